"""FedBug's two networks."""

import pytest
import torch

from fedfreeze.errors import ConfigError
from tasks.inputs import Images
from tasks.models import load_spec


def parameters(model):
    return {
        name: sum(parameter.numel() for parameter in module.parameters())
        for name, module in model.named_children()
    }


@pytest.mark.parametrize(("outputs"), [10, 100])
def test_the_network_for_cifar_has_five_modules_of_the_papers_sizes(outputs):
    model = load_spec("fedbug-cnn").build(Images(3, 32), outputs)
    assert parameters(model) == {
        "conv1": 64 * 3 * 25 + 64,
        "conv2": 64 * 64 * 25 + 64,
        "fc1": 64 * 5 * 5 * 384 + 384,
        "fc2": 384 * 192 + 192,
        "fc3": 192 * outputs + outputs,
    }


def test_the_network_for_tiny_imagenet_has_six():
    model = load_spec("fedbug-cnn-6").build(Images(3, 64), 200)
    assert parameters(model) == {
        "conv1": 64 * 3 * 25 + 64,
        "conv2": 64 * 64 * 25 + 64,
        "conv3": 64 * 64 * 25 + 64,
        "fc1": 64 * 4 * 4 * 256 + 256,
        "fc2": 256 * 128 + 128,
        "fc3": 128 * 200 + 200,
    }


def test_it_computes_what_its_description_says():
    model = load_spec("fedbug-cnn").build(Images(1, 16), 3)
    images = torch.randn(2, 1, 16, 16)
    values = images
    for convolution in (model.conv1, model.conv2):
        values = torch.nn.MaxPool2d(2)(torch.relu(convolution(values)))
    values = values.reshape(2, 64)
    expected = model.fc3(torch.relu(model.fc2(torch.relu(model.fc1(values)))))
    assert torch.equal(model(images), expected)


@pytest.mark.parametrize(("name", "smallest"), [("fedbug-cnn", 16), ("fedbug-cnn-6", 36)])
def test_images_that_are_too_small_are_refused_and_the_smallest_is_not(name, smallest):
    build = load_spec(name).build
    assert build(Images(1, smallest), 2)(torch.zeros(1, 1, smallest, smallest)).shape == (1, 2)
    with pytest.raises(ConfigError) as caught:
        build(Images(1, smallest - 1), 2)
    assert str(caught.value) == (
        f"model.name: {name} takes images with a side of {smallest} pixels or more, this task's "
        f"have {smallest - 1}; choose another model, or leave model.name out"
    )


@pytest.mark.parametrize(("name", "count"), [("fedbug-cnn", 5), ("fedbug-cnn-6", 6)])
def test_its_modules_are_the_papers(name, count):
    modules = load_spec(name).groupings["modules"]
    assert len(modules) == count
    assert modules["conv1"] == ("conv1.*",)
