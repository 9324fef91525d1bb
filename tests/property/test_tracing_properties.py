"""What holds for the layout of any stack of common layers."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from device_profiles.cost import training_flops
from tasks.tracing import trace
from tests.unit.tasks.tracing.small_nets import Residual, freeze_below, kept_bytes

CHANNELS, SIDE, BATCH = 4, 6, 3

PLAIN = {
    "convolution": lambda: [nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)],
    "in place": lambda: [nn.Conv2d(CHANNELS, CHANNELS, 1), nn.ReLU(inplace=True)],
    "sigmoid": lambda: [nn.Conv2d(CHANNELS, CHANNELS, 1, bias=False), nn.Sigmoid()],
    "transposed": lambda: [nn.ConvTranspose2d(CHANNELS, CHANNELS, 3, padding=1), nn.Tanh()],
    "residual": lambda: [Residual(CHANNELS)],
}
NORMED = PLAIN | {
    "batch norm": lambda: [
        nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=2),
        nn.BatchNorm2d(CHANNELS),
        nn.ReLU(),
    ],
    "group norm": lambda: [nn.Conv2d(CHANNELS, CHANNELS, 1), nn.GroupNorm(2, CHANNELS)],
    "dropout": lambda: [nn.Conv2d(CHANNELS, CHANNELS, 1), nn.Dropout(0.3)],
}


def stacks(kinds):
    return st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=5)


def built(names, kinds):
    parts = [part for name in names for part in kinds[name]()]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(CHANNELS * SIDE * SIDE, 2))


def batch():
    return torch.rand(BATCH, CHANNELS, SIDE, SIDE)


@settings(max_examples=25, deadline=None)
@given(stacks(NORMED), st.data())
def test_layers_divide_the_state_in_order_and_their_activations_are_what_autograd_keeps(
    names, data
):
    net = built(names, NORMED)
    layout = trace(net, batch(), "net")
    assert len(layout) == len(names) + 1
    assert list(layout.tensors) == list(net.state_dict())
    shallowest = data.draw(st.integers(0, len(layout) - 1))
    predicted = sum(layer.costs.activation_bytes for layer in layout.layers[shallowest:])
    freeze_below(net, layout, shallowest)
    assert round(predicted * BATCH) == kept_bytes(net, batch())


@settings(max_examples=25, deadline=None)
@given(stacks(PLAIN), st.data())
def test_operations_of_any_trained_set_are_what_torch_counts(names, data):
    net = built(names, PLAIN)
    layout = trace(net, batch(), "net")
    trained = data.draw(st.sets(st.sampled_from(layout.names), min_size=1))
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(layout.layer_of[name] in trained)
    with FlopCounterMode(display=False) as counter:
        net(batch()).sum().backward()
    assert round(training_flops(layout, trained, BATCH)) == counter.get_total_flops()


@settings(max_examples=25, deadline=None)
@given(stacks(NORMED))
def test_a_stack_can_be_cut_after_each_layer_where_its_map_crosses(names):
    layout = trace(built(names, NORMED), batch(), "net")
    crossing = 4 * CHANNELS * SIDE * SIDE
    assert [layer.cut_bytes for layer in layout] == [crossing] * len(names) + [None]
