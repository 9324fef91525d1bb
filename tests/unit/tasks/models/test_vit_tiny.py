"""ViT-Tiny for small images."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from fedfreeze.errors import ConfigError
from tasks.inputs import Images
from tasks.loading import load
from tasks.models import load_spec
from tasks.options import Options

SPEC = load_spec("vit-tiny")
WIDTH, DEPTH = 192, 12


def parameters(channels, patch, tokens, outputs):
    norm = 2 * WIDTH
    attention = (3 * WIDTH**2 + 3 * WIDTH) + (WIDTH**2 + WIDTH)
    mlp = (4 * WIDTH**2 + 4 * WIDTH) + (4 * WIDTH**2 + WIDTH)
    patches = channels * patch**2 * WIDTH + WIDTH
    positions_and_class = (tokens + 1) * WIDTH + WIDTH
    blocks = DEPTH * (2 * norm + attention + mlp)
    return patches + positions_and_class + blocks + norm + WIDTH * outputs + outputs


@pytest.mark.parametrize(
    ("channels", "side", "patch", "tokens", "outputs"),
    [(3, 32, 4, 64, 10), (1, 28, 7, 16, 10), (3, 64, 4, 256, 200), (1, 8, 4, 4, 2)],
)
def test_it_has_the_parameters_that_arithmetic_gives(channels, side, patch, tokens, outputs):
    model = SPEC.build(Images(channels, side), outputs)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == parameters(channels, patch, tokens, outputs)
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


@pytest.mark.parametrize("side", [4, 30, 33, 100])
def test_a_side_that_patches_do_not_divide_or_that_is_too_large_is_refused(side):
    with pytest.raises(ConfigError) as caught:
        SPEC.build(Images(3, side), 10)
    assert str(caught.value) == (
        "model.name: vit-tiny takes images with a side from 8 to 96 pixels that 4 divides, this "
        f"task's have {side}; choose another model, or leave model.name out"
    )
