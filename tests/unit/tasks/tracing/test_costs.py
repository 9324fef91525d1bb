"""Costs by layer: against autograd itself, torch's counter and the cost model that uses them."""

import pytest
import timm
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from device_profiles.cost import training_flops
from tasks.models.fashion import FashionNet
from tasks.tracing import split_attention, trace
from tests.unit.tasks.tracing.small_nets import (
    Net,
    Residual,
    freeze_below,
    kept_bytes,
    residual_net,
    six,
)


def vit():
    return split_attention(
        timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, num_classes=3)
    )


MODELS = {
    "six": (six, (4, 256)),
    "fashion-cnn": (FashionNet, (4, 1, 28, 28)),
    "residual": (residual_net, (4, 3, 6, 6)),
    "vit": (vit, (2, 3, 32, 32)),
    "mobilenet": (
        lambda: timm.create_model("mobilenetv3_small_050", num_classes=3),
        (2, 3, 32, 32),
    ),
}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_activations_from_any_layer_on_are_what_autograd_keeps(model):
    build, shape = MODELS[model]
    net = build()
    layout = trace(net, torch.rand(shape), model)
    for shallowest in range(len(layout)):
        freeze_below(net, layout, shallowest)
        predicted = sum(layer.costs.activation_bytes for layer in layout.layers[shallowest:])
        assert predicted * shape[0] == kept_bytes(net, torch.rand(shape)), layout.names[shallowest]


def test_six_equal_layers_keep_seven_activations():
    layout = trace(six(), torch.rand(2, 256), "six")
    assert [layer.costs.activation_bytes for layer in layout] == [1024] * 5 + [2048]


def counted_flops(net, layout, trained, batch):
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(layout.layer_of[name] in trained)
    with FlopCounterMode(display=False) as counter:
        net(batch).sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("model", ["six", "fashion-cnn", "residual"])  # no norms: torch skips them
@pytest.mark.parametrize("pick", [slice(None), slice(-1, None), slice(0, 1), slice(1, None, 2)])
def test_operations_of_any_frozen_set_are_what_torch_counts(model, pick):
    build, shape = MODELS[model]
    layout = trace(build(), torch.rand(shape), model)
    trained = layout.names[pick]
    counted = counted_flops(build(), layout, trained, torch.rand(shape))
    assert training_flops(layout, trained, shape[0]) == counted


def test_a_block_that_trains_alone_pays_for_the_gradient_inside_it():
    net = nn.Sequential(nn.Conv2d(3, 4, 1), Residual(4), nn.Flatten(), nn.Linear(4 * 36, 2))
    layout = trace(net, torch.rand(1, 3, 6, 6), "net")
    one_convolution = 2 * 4 * 4 * 9 * 36
    costs = layout["1"].costs
    assert costs.forward_flops == costs.weight_grad_flops == 2 * one_convolution
    assert costs.input_grad_flops == 2 * one_convolution
    assert costs.inner_grad_flops == one_convolution
    stem, head = 2 * 3 * 4 * 36, 2 * 4 * 36 * 2
    assert training_flops(layout, ["1"], 1) == stem + 5 * one_convolution + 2 * head


def test_operations_of_parallel_branches_are_exact_or_an_upper_bound():
    def steps(net, x):
        return net.head(torch.relu(net.left(x)) * torch.sigmoid(net.right(x)))

    net = Net(steps, head=nn.Linear(8, 3), left=nn.Linear(5, 8), right=nn.Linear(5, 8))
    batch = torch.rand(4, 5)
    layout = trace(net, batch, "branches")
    assert layout.names == ("left", "right", "head")
    assert training_flops(layout, layout.names, 4) == counted_flops(
        net, layout, layout.names, batch
    )
    for frozen in layout.names:
        trained = tuple(name for name in layout.names if name != frozen)
        assert training_flops(layout, trained, 4) >= counted_flops(net, layout, trained, batch)


@pytest.mark.parametrize("model", ["fashion-cnn", "residual", "vit"])
def test_costs_do_not_depend_on_the_batch(model):
    build, shape = MODELS[model]
    one, five = (trace(build(), torch.rand(n, *shape[1:]), model) for n in (1, 5))
    for a, b in zip(one, five, strict=True):
        assert a.costs == b.costs
        assert a.cut_bytes == b.cut_bytes


def test_what_runs_between_two_layers_is_charged_to_the_one_before():
    def steps(net, x):
        return net.b(torch.sigmoid(torch.exp(net.a(x))))

    layout = trace(Net(steps, a=nn.Linear(4, 8), b=nn.Linear(8, 2)), torch.rand(2, 4), "net")
    # a keeps its input and exp's output; sigmoid's output is b's input, and so is kept by b.
    assert [layer.costs.activation_bytes for layer in layout] == [4 * (4 + 8), 4 * 8]


def test_what_two_branches_keep_is_charged_to_the_branch_that_keeps_it():
    def steps(net, x):
        left = torch.sigmoid(net.left(x))  # keeps its output, for itself alone
        return left + net.right(x)

    net = Net(steps, left=nn.Linear(4, 8), right=nn.Linear(4, 8))
    layout = trace(net, torch.rand(2, 4), "net")
    # The input is kept by both, and so as long as the deeper one trains.
    assert [layer.costs.activation_bytes for layer in layout] == [4 * 8, 4 * 4]


def test_only_the_first_layer_needs_no_gradient_of_its_input():
    layout = trace(six(), torch.rand(2, 256), "six")
    assert [layer.costs.input_grad_flops > 0 for layer in layout] == [False] + [True] * 5


def test_a_layer_used_twice_costs_twice_and_comes_at_its_first_use():
    net = Net(lambda net, x: net.a(net.b(net.a(x))), b=nn.Linear(4, 4), a=nn.Linear(4, 4))
    layout = trace(net, torch.rand(2, 4), "net")
    assert layout.names == ("a", "b")
    a, b = (layer.costs for layer in layout)
    assert (a.forward_flops, a.weight_grad_flops, b.forward_flops) == (64, 64, 32)
    # Whoever trains b or a sends a gradient through the second use of a.
    assert (a.input_grad_flops, b.input_grad_flops) == (0, 64)
    assert layout["a"].cut_bytes == 16


class TwoProducts(torch.autograd.Function):
    """``x A B`` with a backward pass of its own."""

    @staticmethod
    def forward(ctx, x, first, second):
        hidden = x @ first
        ctx.save_for_backward(x, hidden, first, second)
        return hidden @ second

    @staticmethod
    def backward(ctx, gradient):
        x, hidden, first, second = ctx.saved_tensors
        of_hidden = gradient @ second.T
        return of_hidden @ first.T, x.T @ of_hidden, hidden.T @ gradient


def test_products_inside_a_function_with_its_own_gradient_cost_what_they_do_outside():
    def net(product):
        return Net(
            lambda net, x: net.head(product(net.base(x), net.first, net.second)),
            base=nn.Linear(8, 8),
            first=nn.Parameter(torch.rand(8, 16)),
            second=nn.Parameter(torch.rand(16, 8)),
            head=nn.Linear(8, 2),
        )

    batch = torch.rand(4, 8)
    inside = trace(net(TwoProducts.apply), batch, "net")
    outside = trace(net(lambda x, first, second: x @ first @ second), batch, "net")
    assert [flops_of(layer) for layer in inside] == [flops_of(layer) for layer in outside]
    counted = counted_flops(net(TwoProducts.apply), inside, inside.names, batch)
    assert training_flops(inside, inside.names, 4) == counted


def flops_of(layer):
    costs = layer.costs
    return (
        costs.forward_flops,
        costs.input_grad_flops,
        costs.inner_grad_flops,
        costs.weight_grad_flops,
    )


@pytest.mark.parametrize("hide", [lambda net, x: net.a(x).detach(), lambda net, x: quiet(net.a, x)])
def test_a_branch_that_gets_no_gradient_costs_none(hide):
    net = Net(lambda net, x: net.b(net.a(x) - hide(net, x)), a=nn.Linear(4, 6), b=nn.Linear(6, 2))
    a, b = (layer.costs for layer in trace(net, torch.rand(2, 4), "net"))
    assert (a.forward_flops, a.weight_grad_flops, a.input_grad_flops) == (2 * 48, 48, 0)
    assert (b.forward_flops, b.weight_grad_flops, b.input_grad_flops) == (24, 24, 24)


def quiet(module, x):
    with torch.no_grad():
        return module(x)


def test_what_the_author_froze_costs_no_gradient():
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    net[0].requires_grad_(False)
    layout = trace(net, torch.rand(2, 4), "net")
    assert [layer.costs.input_grad_flops for layer in layout] == [0, 0, 24]
    assert [layer.costs.weight_grad_flops for layer in layout] == [0, 72, 24]
