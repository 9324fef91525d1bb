"""Odd modules and tensors: refused when the model is traced, with what to do instead."""

import pytest
import torch
from torch import nn

from fedfreeze.errors import LayoutError
from tasks.tracing import trace
from tests.unit.tasks.tracing.small_nets import Net

BATCH = torch.rand(2, 4, generator=torch.Generator().manual_seed(0))


def refused(net, example=BATCH):
    with pytest.raises(LayoutError) as caught:
        trace(net, example, "net")
    return str(caught.value)


class Remembering(nn.Module):
    """Keeps every example that it has seen."""

    def __init__(self, *, persistent=True):
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.register_buffer("seen", torch.zeros(0, 4), persistent=persistent)

    def forward(self, values):
        self.seen = torch.cat([self.seen, values.detach()])
        return self.head(values)


# ---- modules


@pytest.mark.filterwarnings("ignore:.torch.jit.:FutureWarning")
def test_a_module_that_torchscript_compiled_is_refused():
    net = torch.jit.trace(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), BATCH)
    assert refused(net) == (
        'model "net" is compiled by TorchScript, which hides what its layers do; give the module '
        "that it was made from"
    )


def test_an_exported_module_is_refused():
    net = torch.export.export(nn.Sequential(nn.Linear(4, 2)), (BATCH,)).module()
    assert refused(net) == (
        'model "net" cannot be put into training mode: NotImplementedError: Calling train() is not '
        "supported yet.; give the module that it was made from"
    )


def test_a_lazy_layer_is_refused_by_name():
    assert refused(nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 2))) == (
        'model "net": 0.weight, 0.bias has no shape before the first batch; build the layer with '
        "its sizes, such as nn.Linear(64, 10) in place of nn.LazyLinear(10)"
    )


def test_checking_modes_leaves_them_as_they_are():
    net = nn.Sequential(nn.Linear(4, 3), nn.Dropout(), nn.Linear(3, 2))
    net[1].eval()
    trace(net, BATCH, "net")
    assert [module.training for module in net.modules()] == [True, True, False, True]


# ---- tensors


def test_a_tensor_that_repeats_its_values_in_memory_is_refused():
    net = nn.Sequential(nn.Linear(4, 3, bias=False))
    net[0].weight = nn.Parameter(torch.ones(1, 4).expand(3, 4))
    assert refused(net) == (
        'model "net": values of tensor "0.weight" share memory with each other (it was made by '
        "expand()); make a tensor of its own of it with .clone()"
    )


def test_a_tensor_that_is_a_part_of_another_is_refused():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2, bias=False))
    net[1].weight = nn.Parameter(net[0].weight.data[:2])
    assert refused(net) == (
        'model "net": tensors "0.weight" and "1.weight" share memory without being the same '
        "tensor, so one would change while it is frozen; make it of its own with .clone(), or tie "
        "the whole tensor"
    )


def test_tensors_side_by_side_in_one_memory_are_fine():
    memory = torch.rand(24)
    net = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 2, bias=False))
    net[0].weight = nn.Parameter(memory[:16].view(4, 4).t())
    net[1].weight = nn.Parameter(memory[16:].view(2, 4))
    assert trace(net, BATCH, "net").names == ("0", "1")


@pytest.mark.parametrize(
    ("table", "came"),
    [
        (torch.eye(4).to_sparse(), "sparse_coo on cpu"),
        (torch.empty(4, device="meta"), "strided on meta"),
    ],
    ids=["sparse", "another device"],
)
def test_a_tensor_that_is_sparse_or_elsewhere_is_refused(table, came):
    net = nn.Sequential(nn.Linear(4, 2))
    net[0].register_buffer("table", table)
    assert refused(net) == (
        f'model "net": expected dense tensors on the CPU, "0.table" is {came}; build the model so '
        "(boards move it to their device themselves)"
    )


def test_a_buffer_that_grows_is_refused_unless_the_state_does_not_hold_it():
    assert refused(Remembering()) == (
        'model "net": tensor "seen" was [0, 4] of torch.float32 and is [4, 4] of torch.float32 '
        "after one step; clients could not agree on it, so keep its size, or register it with "
        "persistent=False"
    )
    assert "seen" not in trace(Remembering(persistent=False), BATCH, "net").tensors


# ---- what a run shows


@pytest.mark.parametrize(
    ("reduced", "came"), [(torch.mean, "[]"), (lambda y: y[0], "[3]")], ids=["mean", "first"]
)
def test_an_output_that_has_no_row_for_each_example_is_refused(reduced, came):
    net = Net(lambda net, x: reduced(net.a(x)), a=nn.Linear(4, 3))
    assert refused(net) == (
        f'model "net" must return one row for each example, it returned {came} for 2 examples; '
        "leave means and losses to the task"
    )


def test_an_operation_in_place_that_spoils_the_gradient_is_refused():
    def spoiled(net, x):
        hidden = net.a(x).relu_()
        hidden += 1.0
        return net.b(hidden)

    message = refused(Net(spoiled, a=nn.Linear(4, 3), b=nn.Linear(3, 2)))
    assert message.startswith(
        'model "net" fails on the way back from its output: RuntimeError: one of the variables '
        "needed for gradient computation has been modified by an inplace operation"
    )


def test_an_embedding_with_sparse_gradients_is_refused():
    net = nn.Sequential(nn.Embedding(8, 4, sparse=True), nn.Flatten(), nn.Linear(12, 2))
    assert refused(net, torch.ones(2, 3, dtype=torch.int64)) == (
        'model "net": layer "0" gives a sparse gradient for "0.weight", which optimizers with '
        "momentum or weight decay do not take; build the embedding without sparse=True"
    )


def test_whole_numbers_that_a_model_does_not_take_point_to_the_preprocessing():
    images = torch.zeros(2, 4, dtype=torch.uint8)
    assert refused(nn.Sequential(nn.Linear(4, 2)), images) == (
        'model "net" fails on an example [2, 4] of uint8: RuntimeError: mat1 and mat2 must have '
        "the same dtype, but got Byte and Float; whole numbers reach a model as they are unless "
        "the task has a preprocessing"
    )


def test_a_model_that_tosses_coins_is_traced_alike_in_every_process():
    def either(net, x):
        return net.a(x) if torch.rand(()) < 0.5 else net.a(net.b(x))

    outcomes = set()
    for seed in range(8):
        torch.manual_seed(seed)
        net = Net(either, a=nn.Linear(4, 4), b=nn.Linear(4, 4))
        try:
            outcomes.add(trace(net, BATCH, "net").names)
        except LayoutError as error:
            outcomes.add(str(error))
    assert len(outcomes) == 1
