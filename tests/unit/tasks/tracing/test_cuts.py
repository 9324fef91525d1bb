"""Where a model can be cut: which tensors cross between layers."""

import torch
from torch import nn
from torch.nn import functional

from tasks.tracing import trace
from tests.unit.tasks.tracing.small_nets import Net, Residual

BYTES = 4


def cuts(net, *shape, example=None):
    batch = torch.rand(2, *shape) if example is None else example
    return [layer.cut_bytes for layer in trace(net, batch, "net")]


def test_a_chain_can_be_cut_after_every_layer_but_the_last():
    net = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3), nn.Linear(3, 2))
    assert cuts(net, 5) == [BYTES * 7, BYTES * 3, None]


def test_a_residual_block_is_one_layer_and_can_be_cut_behind():
    net = nn.Sequential(Residual(3), nn.MaxPool2d(2), Residual(3), nn.Flatten(), nn.Linear(27, 2))
    assert cuts(net, 3, 6, 6) == [BYTES * 27, BYTES * 27, None]


def test_a_way_around_a_layer_forbids_the_cut_before_it():
    def steps(net, x):
        first = net.a(x)
        return net.c(first + net.b(first) * first.mean())

    net = Net(steps, a=nn.Linear(5, 4), b=nn.Linear(4, 4), c=nn.Linear(4, 2))
    # first crosses twice, but it is one tensor, and its mean follows from it.
    assert cuts(net, 5) == [BYTES * 4, BYTES * 4, None]

    def around(net, x):
        first = net.a(x)
        return net.c(net.b(first)) + first

    net = Net(around, a=nn.Linear(5, 4), b=nn.Linear(4, 4), c=nn.Linear(4, 4))
    assert cuts(net, 5) == [BYTES * 4, None, None]


def test_parallel_branches_cross_together():
    def steps(net, x):
        return net.head(torch.relu(net.left(x)) * net.right(x))

    net = Net(steps, left=nn.Linear(5, 4), right=nn.Linear(5, 4), head=nn.Linear(4, 2))
    # After left only its own output crosses: right reads the input.
    assert cuts(net, 5) == [BYTES * 4, BYTES * 4, None]

    def from_stem(net, x):
        return steps(net, net.stem(x))

    net = Net(from_stem, stem=nn.Linear(5, 5), left=net.left, right=net.right, head=net.head)
    assert cuts(net, 5) == [BYTES * 5, None, BYTES * 4, None]


def test_what_depends_on_the_input_alone_does_not_cross():
    def steps(net, ids):
        padding = (ids == 0).unsqueeze(-1)
        hidden = net.mix(net.table(ids).masked_fill(padding, 0.0)).masked_fill(padding, 0.0)
        return net.head(hidden.mean(1))

    net = Net(steps, table=nn.Embedding(9, 6), mix=nn.Linear(6, 6), head=nn.Linear(6, 2))
    found = cuts(net, example=torch.tensor([[1, 2, 0], [3, 4, 5]]))
    assert found == [BYTES * 18, BYTES * 6, None]


def test_only_the_part_of_a_tensor_that_is_read_crosses():
    net = Net(
        lambda net, x: net.head(net.base(x)[:, 0]), base=nn.Linear(5, 4), head=nn.Linear(4, 2)
    )
    assert cuts(net, 7, 5) == [BYTES * 4, None]
    net.steps = lambda net, x: net.head(net.base(x)[:, 0]) + net.head(net.base(x)[:, 1])
    assert cuts(net, 7, 5) == [None, None]  # base runs twice: two tensors

    def both(net, x):
        hidden = net.base(x)
        return net.head(hidden[:, 0]) + net.head(hidden[:, 1])

    net.steps = both
    assert cuts(net, 7, 5) == [BYTES * 28, None]


def test_an_operation_in_place_makes_no_second_tensor():
    net = nn.Sequential(nn.Linear(5, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
    assert cuts(net, 5) == [BYTES * 4, None]

    def steps(net, x):
        hidden = net.a(x)
        hidden += net.b(hidden.clone())
        return net.c(hidden)

    net = Net(steps, a=nn.Linear(5, 4), b=nn.Linear(4, 4), c=nn.Linear(4, 2))
    assert cuts(net, 5) == [BYTES * 4, BYTES * 4, None]


def test_the_cut_is_the_narrowest_tensor_from_which_the_rest_follows():
    def steps(net, x):
        padded = functional.pad(net.a(x), (0, 6))
        return net.b(padded)

    net = Net(steps, a=nn.Linear(5, 4), b=nn.Linear(10, 2))
    assert cuts(net, 5) == [BYTES * 4, None]
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))
    assert cuts(net, 1, 8, 8) == [BYTES * 2, None]


def test_a_scale_that_a_later_layer_multiplies_by_is_no_crossing_tensor():
    net = Net(
        lambda net, x: net.b(net.a(x)) * torch.sigmoid(net.a.bias.mean()),
        a=nn.Linear(5, 4),
        b=nn.Linear(4, 2),
    )
    assert cuts(net, 5) == [BYTES * 4, None]


def test_the_output_crosses_every_boundary_behind_the_layer_that_made_it():
    def steps(net, x):
        first = net.a(x)
        return first + net.b(first.detach()) * 0 + net.c(first).mean()

    net = Net(steps, a=nn.Linear(5, 4), b=nn.Linear(4, 4), c=nn.Linear(4, 4))
    assert cuts(net, 5) == [BYTES * 4, None, None]


def test_a_cut_is_measured_in_the_models_own_numbers():
    net = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3)).double()
    example = torch.rand(2, 5, dtype=torch.float64)
    assert cuts(net, example=example) == [8 * 7, None]


def test_what_has_only_the_shape_of_a_tensor_does_not_depend_on_it():
    def steps(net, x):
        first = net.a(x)
        state = torch.zeros_like(first) + torch.rand_like(first)
        return net.c(net.b(first) + state)

    net = Net(steps, a=nn.Linear(5, 4), b=nn.Linear(4, 4), c=nn.Linear(4, 2))
    assert cuts(net, 5) == [BYTES * 4, BYTES * 4, None]

    def later(net, x):
        first = net.a(x)
        state = torch.zeros_like(first)
        return net.c(net.b(first)) + state

    net = Net(later, a=nn.Linear(5, 4), b=nn.Linear(4, 4), c=nn.Linear(4, 4))
    assert cuts(net, 5) == [BYTES * 4, BYTES * 4, None]
