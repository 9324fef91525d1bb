"""Order, names and kinds of layers; odd models, which are traced right or refused clearly."""

import pytest
import timm
import torch
from torch import nn
from torch.nn import functional

from fedfreeze.errors import LayoutError
from fedfreeze.layout import TensorSpec
from tasks.tracing import trace
from tasks.tracing.layers import unique
from tasks.tracing.units import Unit
from tests.unit.tasks.tracing.small_nets import Net, Residual

BATCH = torch.rand(2, 4, generator=torch.Generator().manual_seed(0))


def refused(net, example=BATCH):
    with pytest.raises(LayoutError) as caught:
        trace(net, example, "net")
    return str(caught.value)


# ---- order and names


def test_layers_stand_in_the_order_in_which_they_run():
    net = Net(
        lambda net, x: net.a(torch.relu(net.c(torch.relu(net.b(x))))),
        a=nn.Linear(3, 2),
        b=nn.Linear(4, 3),
        c=nn.Linear(3, 3),
    )
    assert trace(net, BATCH, "net").names == ("b", "c", "a")


def test_modules_without_tensors_are_no_layers():
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5), nn.Linear(3, 2))
    assert trace(net, torch.rand(2, 2, 2), "net").names == ("1", "4")


def test_a_norm_joins_the_convolution_before_it_else_what_comes_after():
    net = nn.Sequential(
        nn.BatchNorm2d(1),
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.PReLU(),
        Residual(4),
        nn.GroupNorm(2, 4),
        nn.Flatten(),
        nn.Linear(16, 2),
    )
    layout = trace(net, torch.rand(2, 1, 4, 4), "net")
    owners = {layer.name: {s.name.split(".")[0] for s in layer.tensors} for layer in layout}
    assert owners == {"1": {"0", "1", "2", "3"}, "4": {"4"}, "7": {"5", "7"}}


def test_a_convolution_and_its_norm_in_a_container_of_their_own_take_its_name():
    block = nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2))
    net = nn.Sequential(block, nn.Flatten(), nn.Linear(8, 3))
    layout = trace(net, torch.rand(2, 1, 4, 4), "net")
    assert layout["0"].tensors == (
        TensorSpec("0.0.weight", (2, 1, 3, 3), "float32", "parameter"),
        TensorSpec("0.1.weight", (2,), "float32", "parameter"),
        TensorSpec("0.1.bias", (2,), "float32", "parameter"),
        TensorSpec("0.1.running_mean", (2,), "float32", "buffer"),
        TensorSpec("0.1.running_var", (2,), "float32", "buffer"),
        TensorSpec("0.1.num_batches_tracked", (), "int64", "buffer"),
    )
    assert list(layout.tensors) == list(net.state_dict())


def test_tensors_on_the_model_itself_join_what_runs_before_them_or_else_first():
    net = Net(
        lambda net, x: net.b(net.a(x * net.early) + net.middle) * net.late,
        a=nn.Linear(4, 3),
        b=nn.Linear(3, 2),
        early=nn.Parameter(torch.ones(4)),
        middle=nn.Parameter(torch.ones(3)),
        late=nn.Parameter(torch.ones(2)),
    )
    layout = trace(net, BATCH, "net")
    assert layout.names == ("a", "b")
    assert [layout.layer_of[name] for name in ("early", "middle", "late")] == ["a", "a", "b"]


def test_matrices_on_the_model_itself_are_layers():
    net = Net(
        lambda net, x: (x @ net.first + net.shift) @ net.second,
        first=nn.Parameter(torch.rand(4, 3)),
        shift=nn.Parameter(torch.rand(3)),
        second=nn.Parameter(torch.rand(3, 2)),
    )
    layout = trace(net, BATCH, "net")
    assert layout.names == ("first", "second")
    assert layout.layer_of["shift"] == "first"
    assert layout["second"].costs.forward_flops == 2 * 3 * 2


def test_a_single_module_is_a_model():
    layout = trace(nn.Linear(4, 2), BATCH, "net")
    assert layout.names == ("weight",)
    assert list(layout.tensors) == ["weight", "bias"]


def test_names_that_would_collide_are_numbered():
    units = [Unit("a", (f"{at}.weight",), "weight", at) for at in range(3)]
    assert [unit.name for unit in unique(units)] == ["a", "a-2", "a-3"]


# ---- what the layout lists


def test_a_parameter_tied_inside_one_layer_is_listed_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(4, 4), nn.Linear(4, 4)
            self.down.weight = self.up.weight

        def forward(self, x):
            return self.down(torch.relu(self.up(x)))

    layout = trace(nn.Sequential(Tied(), nn.Linear(4, 2)), BATCH, "net")
    assert [spec.name for spec in layout["0"].tensors] == [
        "0.up.weight",
        "0.up.bias",
        "0.down.bias",
    ]


def test_layers_with_a_tied_weight_are_one_layer_at_the_place_of_the_first():
    net = Net(
        lambda net, ids: net.out(net.mix(net.table(ids)).mean(1)),
        table=nn.Embedding(9, 4),
        mix=nn.Linear(4, 4),
        out=nn.Linear(4, 9),
    )
    net.out.weight = net.table.weight
    layout = trace(net, torch.zeros(2, 3, dtype=torch.long), "net")
    assert layout.names == ("table", "mix")
    assert [spec.name for spec in layout["table"].tensors] == ["table.weight", "out.bias"]
    assert layout.parameter_count == 9 * 4 + 9 + 4 * 4 + 4
    # Looking up three rows, and the product: both train the one table.
    assert layout["table"].costs.weight_grad_flops == 3 * 4 + 2 * 4 * 9


def test_a_module_under_two_names_is_one_layer_that_costs_twice():
    one = nn.Linear(4, 4)
    layout = trace(nn.Sequential(one, nn.ReLU(), one, nn.Linear(4, 2)), BATCH, "net")
    assert layout.names == ("0", "3")
    assert layout["0"].costs.forward_flops == 2 * 32


def test_a_scalar_parameter_belongs_to_a_layer():
    net = Net(
        lambda net, x: net.a(x) * net.temperature.exp(),
        a=nn.Linear(4, 2),
        temperature=nn.Parameter(torch.tensor(0.5)),
    )
    layout = trace(net, BATCH, "net")
    assert layout["a"].tensors[0] == TensorSpec("temperature", (), "float32", "parameter")


def test_a_buffer_that_nothing_changes_belongs_to_a_layer():
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.ones(4))
            self.register_buffer("unused", torch.ones(2, dtype=torch.int64))

        def forward(self, x):
            return x - self.mean

    layout = trace(nn.Sequential(Shifted(), nn.Linear(4, 2)), BATCH, "net")
    assert layout.names == ("1",)
    assert [(s.name, s.kind) for s in layout["1"].tensors][:2] == [
        ("0.mean", "buffer"),
        ("0.unused", "buffer"),
    ]


def test_what_the_author_froze_is_constant():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    net[0].requires_grad_(False)
    net[1].bias.requires_grad_(False)
    layout = trace(net, BATCH, "net")
    assert [(spec.name, spec.kind) for spec in layout.tensors.values()] == [
        ("0.weight", "constant"),
        ("0.bias", "constant"),
        ("1.weight", "parameter"),
        ("1.bias", "constant"),
    ]
    assert layout["0"].parameters == ()
    assert layout.parameter_count == 8


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_a_model_in_other_floats_keeps_them(dtype):
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).to(dtype)
    layout = trace(net, BATCH.to(dtype), "net")
    assert {spec.dtype for spec in layout.tensors.values()} == {str(dtype).removeprefix("torch.")}
    assert layout["0"].cut_bytes == 6 * dtype.itemsize
    assert layout["0"].costs.forward_flops == 48


def test_a_model_in_bfloat16_is_refused():
    assert refused(nn.Sequential(nn.Linear(4, 2)).bfloat16()) == (
        'model "net": tensor "0.weight" is bfloat16, which numpy does not have; convert the model '
        "with .float()"
    )


def test_a_complex_parameter_is_refused():
    net = Net(
        lambda net, x: torch.fft.irfft(torch.fft.rfft(x) * net.filter),
        filter=nn.Parameter(torch.rand(3, dtype=torch.complex64)),
    )
    assert refused(net) == (
        'model "net": parameter "filter" is complex64; only real numbers can be sent, so keep its '
        "real and imaginary parts as two parameters"
    )


# ---- what is run


def test_operations_in_place_are_followed():
    def steps(net, x):
        hidden = net.a(x)
        hidden[:, 0] = 0.0
        hidden += net.b(hidden * 1.0)
        hidden.relu_()
        return net.c(hidden)

    net = Net(steps, c=nn.Linear(4, 2), b=nn.Linear(4, 4), a=nn.Linear(4, 4))
    layout = trace(net, BATCH, "net")
    assert layout.names == ("a", "b", "c")
    assert [layer.costs.forward_flops for layer in layout] == [32, 32, 16]


@pytest.mark.parametrize(
    "convolution",
    [
        nn.utils.parametrizations.weight_norm(nn.Conv2d(1, 3, 3)),
        nn.utils.parametrizations.spectral_norm(nn.Conv2d(1, 3, 3)),
        nn.utils.parametrizations.orthogonal(nn.Conv2d(1, 3, 3)),
    ],
    ids=["weight norm", "spectral norm", "orthogonal"],
)
def test_a_parametrised_convolution_is_one_layer(convolution):
    net = nn.Sequential(convolution, nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))
    layout = trace(net, torch.rand(2, 1, 4, 4), "net")
    assert layout.names == ("0", "3")
    assert layout["0"].costs.forward_flops == 2 * 3 * 4 * 9 + 8 * 12


def test_a_standardised_convolution_is_one_layer():
    net = nn.Sequential(timm.layers.StdConv2d(1, 3, 3, padding=0), nn.Flatten(), nn.Linear(12, 2))
    layout = trace(net, torch.rand(2, 1, 4, 4), "net")
    assert layout["0"].costs.weight_grad_flops == layout["0"].costs.forward_flops == 2 * 3 * 4 * 9


def test_of_a_branch_on_the_data_the_one_taken_is_traced():
    def steps(net, x):
        hidden = net.a(x)
        return net.b(hidden) if bool(x.sum() > 0) else hidden

    net = Net(steps, a=nn.Linear(4, 4), b=nn.Linear(4, 4))
    assert trace(net, torch.ones(2, 4), "net").names == ("a", "b")
    assert refused(net, -torch.ones(2, 4)) == (
        'model "net": layer "b" never ran in the forward pass; use it or remove it'
    )


def test_what_a_function_with_its_own_gradient_keeps_is_charged_where_it_stands():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, scale):
            ctx.save_for_backward(values, scale)
            return values * scale

        @staticmethod
        def backward(ctx, gradient):
            values, scale = ctx.saved_tensors
            return gradient * scale, (gradient * values).sum(0)

    net = Net(
        lambda net, x: net.b(Scaled.apply(net.a(x), net.scale)),
        a=nn.Linear(4, 3),
        scale=nn.Parameter(torch.ones(3)),
        b=nn.Linear(3, 2),
    )
    layout = trace(net, BATCH, "net")
    # The input and the scaled values are kept by a, what b reads by b.
    assert [layer.costs.activation_bytes for layer in layout] == [4 * (4 + 3), 4 * 3]


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_sequences_packed_by_their_lengths_are_followed(kind):
    def steps(net, ids):
        lengths = (ids != 0).sum(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            net.table(ids), lengths, batch_first=True, enforce_sorted=False
        )
        _, state = net.rnn(packed)
        return net.head(state[0][-1] if isinstance(state, tuple) else state[-1])

    net = Net(
        steps,
        table=nn.Embedding(9, 6),
        rnn=kind(6, 4, batch_first=True),
        head=nn.Linear(4, 2),
    )
    ids = torch.tensor([[1, 2, 3, 4, 5, 0, 0], [6, 7, 8, 1, 1, 2, 3]])
    layout = trace(net, ids, "net")
    assert layout.names == ("table", "rnn", "head")
    assert [layer.cut_bytes is None for layer in layout] == [False, False, True]
    # 12 tokens; the products with the states of all but the first step, 10 rows.
    gates = {nn.GRU: 3, nn.LSTM: 4}[kind]
    expected = 2 * gates * 4 * (12 * 6 + 10 * 4)
    assert layout["rnn"].costs.forward_flops * 2 == expected


def test_a_recomputed_block_is_traced_once():
    def steps(net, x):
        return net.b(torch.utils.checkpoint.checkpoint(net.a, x, use_reentrant=False))

    net = Net(steps, a=nn.Sequential(nn.Linear(4, 4), nn.Tanh()), b=nn.Linear(4, 2))
    layout = trace(net, BATCH, "net")
    assert [layer.costs.forward_flops for layer in layout] == [32, 16]


def test_tracing_changes_neither_the_model_nor_the_random_state():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5), nn.Flatten())
    net.eval()
    net[0].weight.requires_grad = False
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    random_state = torch.get_rng_state()
    trace(net, torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0)), "net")
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert torch.equal(random_state, torch.get_rng_state())
    assert not net[1].training
    assert net[0].weight.grad is None
    assert not net[0].weight.requires_grad
    assert net[0].bias.grad is None


# ---- what is refused


def test_a_layer_that_never_runs_is_named():
    net = Net(lambda net, x: net.a(x), a=nn.Linear(4, 2), spare=nn.Linear(4, 2))
    assert refused(net) == (
        'model "net": layer "spare" never ran in the forward pass; use it or remove it'
    )


def test_a_layer_without_gradient_is_named():
    net = Net(lambda net, x: net.a(x) + net.b(x).detach(), a=nn.Linear(4, 2), b=nn.Linear(4, 2))
    assert refused(net) == (
        'model "net": layer "b" got no gradient for "b.weight"; use the parameter on the way to '
        "the output, remove it, or set its requires_grad to False"
    )


def test_a_parameter_that_is_never_used_is_named_unless_it_is_constant():
    net = Net(lambda net, x: net.a(x), a=nn.Linear(4, 2), spare=nn.Parameter(torch.ones(2)))
    assert refused(net) == (
        'model "net": layer "a" got no gradient for "spare"; use the parameter on the way to '
        "the output, remove it, or set its requires_grad to False"
    )
    net.spare.requires_grad_(False)
    assert trace(net, BATCH, "net").tensors["spare"].kind == "constant"


def test_a_model_whose_output_is_cut_off_names_the_first_layer():
    net = Net(lambda net, x: net.a(x).detach(), a=nn.Linear(4, 2))
    assert refused(net) == (
        'model "net": layer "a" got no gradient for "a.weight"; use the parameter on the way to '
        "the output, remove it, or set its requires_grad to False"
    )


def test_a_model_without_anything_to_train_is_refused():
    assert refused(nn.Sequential(nn.ReLU())) == (
        'model "net" has no trainable parameter: it has 0 parameter(s), none with requires_grad; '
        "nothing could be trained"
    )
    assert refused(nn.Sequential(nn.Linear(4, 2)).requires_grad_(False)) == (
        'model "net" has no trainable parameter: it has 2 parameter(s), none with requires_grad; '
        "nothing could be trained"
    )


@pytest.mark.parametrize(
    ("returned", "kind"), [(lambda y: (y, y), "tuple"), (lambda y: {"logits": y}, "dict")]
)
def test_a_model_must_return_one_tensor(returned, kind):
    net = Net(lambda net, x: returned(net.a(x)), a=nn.Linear(4, 2))
    assert refused(net) == (
        f'model "net" must return one tensor, it returned {kind}; wrap it in a module that '
        "returns the logits alone"
    )


def test_an_operation_of_unknown_cost_on_a_parameter_is_named():
    net = Net(
        lambda net, x: net.a(x) + torch.cdist(x, net.centres),
        a=nn.Linear(4, 3),
        centres=nn.Parameter(torch.rand(3, 4)),
    )
    assert refused(net) == (
        'model "net": the operation aten::_cdist_forward uses the parameter "centres", and there '
        "is no formula for what it costs; write the step with matrix products, convolutions, "
        "norms or products, or add a formula to tasks/tracing/flops.py"
    )


def test_an_unknown_operation_on_parameters_alone_is_no_cost_of_an_example():
    net = Net(
        lambda net, x: functional.linear(x, torch.linalg.qr(net.basis)[0]),
        basis=nn.Parameter(torch.rand(4, 4)),
    )
    assert trace(net, BATCH, "net").layers[0].costs.forward_flops == 32


def test_a_model_that_fails_says_on_what():
    assert refused(nn.Sequential(nn.Linear(5, 2))) == (
        'model "net" fails on an example [2, 4] of float32: RuntimeError: mat1 and mat2 shapes '
        "cannot be multiplied (2x4 and 5x2)"
    )


def test_a_model_that_cannot_be_copied_is_refused():
    net = nn.Sequential(nn.Linear(4, 2))
    net[0].cached = net[0].weight * 2
    assert refused(net).startswith('model "net" cannot be copied: Only Tensors created explicitly')


def test_parameters_that_the_state_does_not_hold_are_named():
    class Secret(nn.Linear):
        def _save_to_state_dict(self, destination, prefix, keep_vars):
            pass

    assert refused(nn.Sequential(nn.Linear(4, 4), Secret(4, 2))) == (
        'model "net": the parameters 1.weight, 1.bias are not in its state_dict(), so they could '
        "not be sent; do not override state_dict()"
    )
