"""ResNets with GroupNorm for small images."""

from fnmatch import fnmatchcase

import pytest
import torch
from torch import nn

from fedfreeze.errors import ConfigError
from tasks.inputs import Images, Values
from tasks.models import load_spec

BLOCKS = {"resnet18-gn": (2, 2, 2, 2), "resnet34-gn": (3, 4, 6, 3)}


def parameters(blocks, channels, kernel, outputs):
    """Weights of convolutions and two numbers a channel for each norm, block by block."""
    total = channels * 64 * kernel**2 + 2 * 64
    wide = 64
    for stage, count in enumerate(blocks):
        narrow, wide = wide, 64 * 2**stage
        for block in range(count):
            inner = narrow if block == 0 else wide
            total += 9 * inner * wide + 9 * wide * wide + 4 * wide
            if inner != wide:
                total += inner * wide + 2 * wide
    return total + 512 * outputs + outputs


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize(("channels", "side", "kernel"), [(3, 32, 3), (1, 28, 3), (1, 96, 7)])
def test_it_has_the_parameters_that_arithmetic_gives(name, channels, side, kernel):
    model = load_spec(name).build(Images(channels, side), 10)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == parameters(BLOCKS[name], channels, kernel, 10)


def test_all_its_norms_have_two_groups_and_no_buffer():
    model = load_spec("resnet18-gn").build(Images(3, 32), 10)
    norms = [module for module in model.modules() if isinstance(module, nn.GroupNorm)]
    assert {norm.num_groups for norm in norms} == {2}
    assert len(norms) == 1 + 2 * 8 + 3  # stem, two a block, three shortcuts
    assert list(model.buffers()) == []


@pytest.mark.parametrize(("side", "last"), [(32, 4), (64, 8), (65, 3)])
def test_small_images_keep_their_pixels_until_the_second_stage(side, last):
    model = load_spec("resnet18-gn").build(Images(3, side), 10)
    seen = []
    model.layer4.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    assert model(torch.zeros(1, 3, side, side)).shape == (1, 10)
    assert seen[0][-2:] == (last, last)


def test_the_stem_for_small_images_starts_like_the_other_convolutions():
    weight = load_spec("resnet18-gn").build(Images(3, 32), 10).conv1.weight
    # He et al. (2015) by fan out: variance 2 / (64 * 9); 1,728 draws.
    assert float(weight.detach().std()) == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.1)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("grouping", ["modules", "blocks"])
def test_each_tensor_is_in_one_layer_of_a_grouping(name, grouping):
    spec = load_spec(name)
    groups = spec.groupings[grouping]
    assert len(groups) == (4 if grouping == "modules" else sum(BLOCKS[name]))
    for tensor in spec.build(Images(3, 32), 10).state_dict():
        owners = [g for g, globs in groups.items() if any(fnmatchcase(tensor, x) for x in globs)]
        assert len(owners) == 1, tensor


def test_the_classifier_goes_with_the_last_block_and_the_stem_with_the_first():
    groupings = load_spec("resnet18-gn").groupings
    assert groupings["modules"]["layer4_fc"] == ("layer4.*", "fc.*")
    assert groupings["blocks"]["layer4.1_fc"] == ("layer4.1.*", "fc.*")
    assert groupings["blocks"]["stem_layer1.0"] == ("conv1.*", "bn1.*", "layer1.0.*")


def test_sensor_readings_are_no_images():
    with pytest.raises(ConfigError) as caught:
        load_spec("resnet34-gn").build(Values((6, 100)), 7)
    assert str(caught.value) == (
        "model.name: resnet34-gn takes images, this task gives values; choose a model for these, "
        "or leave model.name out"
    )
