"""ViT-Tiny and ViT-Nano for small images."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from fedfreeze.errors import ConfigError
from tasks.inputs import Images
from tasks.loading import load
from tasks.models import load_spec
from tasks.options import Options

SIZES = {"vit-tiny": (192, 12), "vit-nano": (64, 4)}


def parameters(name, channels, patch, tokens, outputs):
    width, depth = SIZES[name]
    norm = 2 * width
    attention = (3 * width**2 + 3 * width) + (width**2 + width)
    mlp = (4 * width**2 + 4 * width) + (4 * width**2 + width)
    patches = channels * patch**2 * width + width
    positions_and_class = (tokens + 1) * width + width
    blocks = depth * (2 * norm + attention + mlp)
    return patches + positions_and_class + blocks + norm + width * outputs + outputs


@pytest.mark.parametrize(
    ("channels", "side", "patch", "tokens", "outputs"),
    [(3, 32, 4, 64, 10), (1, 28, 7, 16, 10), (3, 64, 4, 256, 200), (1, 8, 4, 4, 2)],
)
@pytest.mark.parametrize("name", SIZES)
def test_it_has_the_parameters_that_arithmetic_gives(  # noqa: PLR0917 - a row of the table
    name, channels, side, patch, tokens, outputs
):
    model = load_spec(name).build(Images(channels, side), outputs)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == parameters(name, channels, patch, tokens, outputs)
    assert model(torch.zeros(1, channels, side, side)).shape == (1, outputs)


def test_a_runs_own_file_with_its_attention_split_fills_a_new_model(tmp_path):
    task = load("mnist-writers", Options(model="vit-tiny"))
    arrays, source = task.initial(1)
    assert source == "random weights"
    path = tmp_path / "model.safetensors"
    save_file(arrays, path)
    loaded, source = load("mnist-writers", Options(model="vit-tiny", pretrained=str(path))).initial(
        2
    )
    assert source.startswith(f"{path} (sha256 ")
    fresh, _ = task.initial(2)
    for name, array in loaded.items():
        expected = fresh if name.startswith("head.") else arrays
        assert np.array_equal(array, expected[name]), name


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("side", [4, 30, 33, 100])
def test_a_side_that_patches_do_not_divide_or_that_is_too_large_is_refused(name, side):
    with pytest.raises(ConfigError) as caught:
        load_spec(name).build(Images(3, side), 10)
    assert str(caught.value) == (
        f"model.name: {name} takes images with a side from 8 to 96 pixels that 4 divides, this "
        f"task's have {side}; choose another model, or leave model.name out"
    )
