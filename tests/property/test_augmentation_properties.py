"""What holds for every batch, setting and seed of an augmentation."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.preparation.augmentation import FlipAndCrop


@st.composite
def cases(draw):
    count, channels = draw(st.integers(0, 6)), draw(st.integers(1, 4))
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    seed = draw(st.integers(0, 2**32 - 1))
    pixels = np.random.default_rng(seed).integers(
        1, 256, (count, channels, height, width), np.uint8
    )
    augmentation = FlipAndCrop(flip=draw(st.booleans()), padding=draw(st.integers(0, 5)))
    return torch.from_numpy(pixels), augmentation, seed


@given(cases())
def test_the_same_numbers_give_the_same_images_and_the_input_is_untouched(case):
    images, augment, seed = case
    before = images.clone()
    first = augment(images, np.random.default_rng(seed))
    assert torch.equal(first, augment(images, np.random.default_rng(seed)))
    assert torch.equal(images, before)


@given(cases())
def test_shape_and_type_are_kept_and_values_come_from_the_image_or_the_padding(case):
    images, augment, seed = case
    changed = augment(images, np.random.default_rng(seed))
    assert changed.shape == images.shape
    assert changed.dtype == torch.uint8
    for before, after in zip(images, changed, strict=True):
        for channel_before, channel_after in zip(before, after, strict=True):
            allowed = set(channel_before.flatten().tolist())
            if augment.padding:
                allowed.add(0)
            assert set(channel_after.flatten().tolist()) <= allowed


@given(st.integers(0, 2**32 - 1))
def test_each_image_has_its_own_draw(seed):
    one = np.random.default_rng(0).integers(1, 256, (1, 1, 8, 8), np.uint8)
    images = torch.from_numpy(np.repeat(one, 40, axis=0))
    changed = FlipAndCrop(flip=True, padding=4)(images, np.random.default_rng(seed))
    # 162 results are equally likely: that forty agree has a chance of 162 ** -39.
    assert len(torch.unique(changed.flatten(1), dim=0)) > 1
