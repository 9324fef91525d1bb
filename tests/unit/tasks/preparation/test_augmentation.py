"""Flip and crop, against a slow version that cuts one image at a time."""

import numpy as np
import pytest
import torch

from fedfreeze.errors import ConfigError
from tasks.loading import load
from tasks.options import Options
from tasks.preparation.augmentation import FlipAndCrop


def batch(count=64, channels=3, side=8):
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.integers(1, 256, (count, channels, side, side), np.uint8))


def test_nothing_is_changed_without_flip_and_padding():
    images = batch()
    changed = FlipAndCrop(flip=False, padding=0)(images, np.random.default_rng(1))
    assert torch.equal(changed, images)
    assert changed.data_ptr() != images.data_ptr()


def test_about_half_of_the_images_are_mirrored_and_the_others_untouched():
    images = batch(1000)
    changed = FlipAndCrop(flip=True, padding=0)(images, np.random.default_rng(1))
    mirrored = (changed == images.flip(3)).flatten(1).all(1)
    same = (changed == images).flatten(1).all(1)
    assert bool((mirrored ^ same).all())
    # Four standard deviations of a fair coin.
    assert abs(int(mirrored.sum()) - 500) < 4 * (1000 / 4) ** 0.5


def windows(image, padding, *, flip):
    """Every result that one image may have, by cutting it out of a padded array."""
    side = image.shape[-1]
    padded = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
    for top in range(2 * padding + 1):
        for left in range(2 * padding + 1):
            window = padded[:, top : top + side, left : left + side]
            yield (top, left, False), window
            if flip:
                yield (top, left, True), window[:, :, ::-1]


def test_each_result_is_a_window_of_the_padded_image_and_all_of_them_occur():
    padding = 1
    images = batch(600, channels=2, side=5)
    changed = FlipAndCrop(flip=True, padding=padding)(images, np.random.default_rng(3)).numpy()
    seen = set()
    for before, after in zip(images.numpy(), changed, strict=True):
        found = [
            at for at, window in windows(before, padding, flip=True) if (window == after).all()
        ]
        assert len(found) == 1
        seen.update(found)
    assert len(seen) == 3 * 3 * 2


def test_padding_below_nothing_is_refused():
    with pytest.raises(ConfigError) as caught:
        FlipAndCrop(flip=True, padding=-1)
    assert str(caught.value) == "augmentation: padding must be 0 or more pixels, got -1"


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "tiny-imagenet"])
def test_tasks_of_photographs_are_augmented_when_the_strategy_wants_it(name):
    assert load(name).active_augmentation is None
    augmentation = load(name, Options(augment=True)).active_augmentation
    assert augmentation is not None
    assert augmentation.flip


@pytest.mark.parametrize("name", ["mnist-writers", "femnist", "fashion-cnn"])
def test_digits_letters_and_clothes_are_not(name):
    assert load(name).augmentation is None
