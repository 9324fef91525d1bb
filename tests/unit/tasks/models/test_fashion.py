"""The default model for images of any size."""

import pytest
import torch
from torch import nn

from fedfreeze.errors import ConfigError
from tasks.inputs import Images, Tokens
from tasks.models import load_spec

SPEC = load_spec("fashion-cnn")


def count(channels, side_after, outputs):
    return (
        (16 * 25 * channels + 16)
        + (32 * 16 * 9 + 32)
        + (32 * 32 * 9 + 32)
        + (48 * 32 * 9 + 48)
        + (96 * 48 * side_after**2 + 96)
        + (outputs * 96 + outputs)
    )


@pytest.mark.parametrize(
    ("channels", "side", "side_after", "outputs"),
    [(1, 28, 4, 10), (3, 32, 4, 100), (1, 33, 5, 62), (4, 1, 1, 2), (3, 64, 8, 200)],
)
def test_it_adapts_to_channels_side_and_classes(channels, side, side_after, outputs):
    model = SPEC.build(Images(channels, side), outputs)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert parameters == count(channels, side_after, outputs)
    assert model(torch.zeros(2, channels, side, side)).shape == (2, outputs)


def test_its_weights_are_drawn_in_the_order_of_its_layers():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = SPEC.build(Images(1, 28), 10)
        torch.manual_seed(3)
        layers = [
            *(nn.Conv2d(1, 16, 5), nn.Conv2d(16, 32, 3), nn.Conv2d(32, 32, 3)),
            *(nn.Conv2d(32, 48, 3), nn.Linear(768, 96), nn.Linear(96, 10)),
        ]
    drawn = [parameter for layer in layers for parameter in layer.parameters()]
    for ours, expected in zip(model.parameters(), drawn, strict=True):
        assert torch.equal(ours, expected)


def test_words_are_no_images():
    with pytest.raises(ConfigError) as caught:
        SPEC.build(Tokens(vocabulary=100, length=8), 2)
    assert str(caught.value) == (
        "model.name: fashion-cnn takes images, this task gives tokens; choose a model for these, "
        "or leave model.name out"
    )
