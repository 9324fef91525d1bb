"""Preprocessing of images."""

import numpy as np
import pytest
import torch
from PIL import Image

from tasks.preparation.images import Normalise, ResizeAndNormalise


def test_normalising_scales_shifts_and_divides_each_channel():
    pixels = torch.tensor([0, 255], dtype=torch.uint8).view(1, 2, 1, 1)
    prepared = Normalise(mean=(0.5, 0.25), std=(0.5, 0.75))(pixels)
    assert prepared.dtype == torch.float32
    assert prepared.flatten().tolist() == [-1.0, 1.0]


def smooth(side: int) -> np.ndarray:
    """A colour gradient with a wave: bytes that resizing does not saturate."""
    x = np.linspace(0, 1, side)
    wave = 128 + 60 * np.outer(np.sin(5 * x), np.cos(4 * x))
    return np.stack([wave, 255 * np.outer(x, x), 200 - wave / 2]).astype(np.uint8)


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("side", "to"), [(32, 112), (150, 64)])
def test_resizing_agrees_with_pillow(method, side, to):
    image = smooth(side)
    prepared = ResizeAndNormalise(to, (0.0,) * 3, (1.0,) * 3, method)(torch.from_numpy(image[None]))
    filters = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
    theirs = Image.fromarray(image.transpose(1, 2, 0)).resize((to, to), filters[method])
    expected = np.asarray(theirs).transpose(2, 0, 1)
    # Pillow rounds to whole bytes after each of its two passes.
    assert np.abs(prepared[0].numpy() * 255 - expected).max() < 1.6


def test_an_image_of_the_right_side_is_not_changed():
    image = torch.from_numpy(smooth(20)[None])
    prepared = ResizeAndNormalise(20, (0.0,) * 3, (1.0,) * 3)(image)
    assert torch.equal(prepared, image.float() / 255)


def test_a_grey_image_becomes_three_equal_channels_each_normalised_by_its_own_numbers():
    grey = torch.full((2, 1, 4, 4), 51, dtype=torch.uint8)  # 0.2
    prepared = ResizeAndNormalise(8, (0.0, 0.1, 0.2), (1.0, 0.5, 0.25))(grey)
    assert prepared.shape == (2, 3, 8, 8)
    assert prepared[1, :, 3, 3].tolist() == pytest.approx([0.2, 0.2, 0.0], abs=1e-6)


def test_bicubic_overshoot_stays_within_black_and_white():
    edge = torch.zeros(1, 3, 8, 8, dtype=torch.uint8)
    edge[..., 4:] = 255
    prepared = ResizeAndNormalise(64, (0.0,) * 3, (1.0,) * 3)(edge)
    assert float(prepared.min()) == 0.0
    assert float(prepared.max()) == 1.0


def test_what_it_does_can_be_written_down():
    assert ResizeAndNormalise(112, (0.5,) * 3, (0.25,) * 3).describe() == {
        "kind": "image",
        "side": 112,
        "channels": 3,
        "mean": (0.5, 0.5, 0.5),
        "std": (0.25, 0.25, 0.25),
        "interpolation": "bicubic",
        "antialias": True,
    }


def test_equal_settings_are_one_key():
    assert len({ResizeAndNormalise(112, (0.5,), (0.5,)) for _ in range(2)}) == 1
