"""What a step holds in memory: by hand for small nets, and against what autograd keeps."""

import pytest
import torch
from torch import nn

from tasks.tracing import trace
from tests.unit.tasks.tracing.small_nets import Net, kept_bytes
from tests.unit.tasks.tracing.test_costs import MODELS


def costs(net, *shape, groups=None):
    return [layer.costs for layer in trace(net, torch.rand(1, *shape), "net", groups)]


def test_a_chain_holds_an_operations_input_and_output_and_backward_their_gradients():
    first, second = costs(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), 4)
    # Forward at ReLU: the model's input, the product, ReLU's output. Backward there: two gradients.
    assert first.forward_bytes == 4 * (4 + 8 + 8)
    assert first.transient_bytes == 4 * (8 + 8)
    # Forward: the model's input, ReLU's output, the result. Backward: gradients of the last two.
    assert second.forward_bytes == 4 * (4 + 8 + 2)
    assert second.transient_bytes == 4 * (2 + 8)


def test_the_gradient_of_a_shortcut_waits_for_the_way_around_it():
    def steps(net, x):
        hidden = net.a(x)
        return net.head(hidden + net.b(hidden))

    net = Net(steps, a=nn.Linear(4, 8), b=nn.Linear(8, 8), head=nn.Linear(8, 2))
    a, b, head = costs(net, 4)
    assert head.transient_bytes == 4 * (8 + 2)
    # At the sum: gradients of the sum, of b's output and of a's.
    assert b.transient_bytes == 4 * (8 + 8 + 8)
    assert a.transient_bytes == 4 * 8


def test_a_convolution_works_on_copies_of_its_input_and_output():
    (only,) = costs(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Flatten()), 3, 6, 6)
    inputs, outputs = 4 * 3 * 36, 4 * 4 * 36
    assert only.forward_bytes == (inputs + outputs) * 2
    # Beside the input, which is kept: the output, or its gradient, and the two copies.
    assert only.transient_bytes == outputs + (inputs + outputs)


def test_a_linear_layer_keeps_its_input_for_its_weights_alone():
    # Nothing else keeps what tanh's product with 2 gives.
    net = Net(
        lambda net, x: net.b(torch.tanh(net.a(x)) * 2),
        a=nn.Linear(4, 8),
        b=nn.Linear(8, 2),
    )
    a, b = costs(net, 4)
    assert (a.activation_bytes, a.spared_bytes) == (4 * (4 + 8), 4 * 4)
    assert (b.activation_bytes, b.spared_bytes) == (4 * 8, 4 * 8)


def test_what_another_operation_keeps_as_well_is_not_spared():
    a, b = costs(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), 4)
    assert (b.activation_bytes, b.spared_bytes) == (4 * 8, 0)
    assert a.spared_bytes == a.activation_bytes == 4 * 4


def test_what_two_layers_need_for_their_weights_is_not_spared_by_one():
    net = Net(
        lambda net, x: net.a(torch.exp(x) * 2) + net.b(torch.exp(x) * 2),
        a=nn.Linear(4, 8),
        b=nn.Linear(4, 8),
    )
    apart = costs(net, 4)
    assert [one.spared_bytes for one in apart] == [4 * 4, 4 * 4]
    net.steps = lambda net, x: net.b(x) + net.a(x)
    shared = costs(net, 4)
    assert [one.spared_bytes for one in shared] == [0, 0]
    assert sum(one.activation_bytes for one in shared) == 4 * 4


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("pick", [slice(0, 1), slice(None, None, 2), slice(1, None, 3)])
def test_frozen_layers_above_the_shallowest_keep_at_most_what_is_said(model, pick):
    build, shape = MODELS[model]
    net = build()
    layout = trace(net, torch.rand(shape), model)
    trained = layout.names[pick]
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(layout.layer_of[name] in trained)
    said = sum(
        layer.costs.activation_bytes - (layer.name not in trained) * layer.costs.spared_bytes
        for layer in layout.layers[layout.names.index(trained[0]) :]
    )
    real = kept_bytes(net, torch.rand(shape)) / shape[0]
    assert real <= said <= 1.2 * real
