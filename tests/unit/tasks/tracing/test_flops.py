"""What operators cost: by closed forms, and by torch's own counter where that is right."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from fedfreeze.errors import LayoutError
from tasks.tracing import trace
from tests.unit.tasks.tracing.small_nets import Net

# After a layer that needs the gradient of its output, so that all three numbers are counted.
BATCH = 2


def costs(module, *shape, before=None):
    """Of one example, in ``module`` behind a scale that trains."""
    net = Net(
        lambda net, x: net.module(net.before(x)),
        before=before or nn.Linear(shape[-1], shape[-1]),
        module=module,
    )
    layout = trace(net, torch.rand(BATCH, *shape), "net")
    found = layout.layers[1].costs
    return found.forward_flops, found.input_grad_flops, found.weight_grad_flops


# Each convolution and its multiply-adds per example: places times channels in a group times taps.
CONVOLUTIONS = [
    (nn.Conv1d(4, 6, 3, padding=1), (4, 9), 6 * 9 * 4 * 3),
    (nn.Conv2d(3, 8, 5, stride=2, padding=2), (3, 13, 9), 8 * 7 * 5 * 3 * 25),
    (nn.Conv2d(8, 12, 3, groups=4), (8, 7, 7), 12 * 5 * 5 * 2 * 9),
    (nn.Conv2d(8, 8, 3, groups=8), (8, 7, 7), 8 * 5 * 5 * 9),  # depthwise
    (nn.Conv2d(3, 8, 3, dilation=2), (3, 9, 9), 8 * 5 * 5 * 3 * 9),
    (nn.Conv3d(2, 3, 2), (2, 4, 4, 4), 3 * 27 * 2 * 8),
    # Every value of the input meets every tap and output channel of its group.
    (nn.ConvTranspose2d(4, 6, 3, stride=2), (4, 5, 5), 4 * 25 * 6 * 9),
    (nn.ConvTranspose2d(4, 6, 3, groups=2), (4, 5, 5), 4 * 25 * 3 * 9),
]


@pytest.mark.parametrize(
    ("module", "shape", "products"), CONVOLUTIONS, ids=[str(case[0]) for case in CONVOLUTIONS]
)
def test_a_convolution_costs_two_operations_a_product_three_times(module, shape, products):
    assert costs(module, *shape) == (2 * products,) * 3


@pytest.mark.parametrize(
    ("module", "shape", "products"),
    [
        (nn.Linear(7, 5), (7,), 35),
        (nn.Linear(7, 5, bias=False), (11, 7), 11 * 35),
        (nn.Linear(7, 5), (11, 7), 11 * 35),
    ],
)
def test_a_linear_layer_costs_two_operations_a_product_three_times(module, shape, products):
    assert costs(module, *shape) == (2 * products,) * 3


def test_a_linear_layer_costs_the_same_whatever_the_memory_order_of_its_input():
    net = Net(
        lambda net, x: net.module(net.before(x).transpose(1, 2)),
        before=nn.Linear(11, 11),
        module=nn.Linear(7, 5),
    )
    found = trace(net, torch.rand(BATCH, 7, 11), "net")["module"].costs
    assert found.forward_flops == found.weight_grad_flops == 2 * 11 * 35


NORMS = [
    (nn.BatchNorm2d(4), (4, 5, 5)),
    (nn.GroupNorm(2, 4), (4, 5, 5)),
    (nn.LayerNorm([4, 5, 5]), (4, 5, 5)),
    (nn.LayerNorm(5), (4, 5, 5)),
    (nn.InstanceNorm2d(4, affine=True), (4, 5, 5)),
]


@pytest.mark.parametrize(("norm", "shape"), NORMS, ids=[str(case[0]) for case in NORMS])
def test_norms_cost_a_few_operations_an_element(norm, shape):
    net = nn.Sequential(nn.Conv2d(4, 4, 1), norm, nn.Conv2d(4, 1, 1))
    with_norm = trace(net, torch.rand(BATCH, *shape), "net")
    without = trace(nn.Sequential(net[0], net[2]), torch.rand(BATCH, *shape), "net")
    pairs = list(zip(with_norm, without, strict=True))
    forward, weights, inputs = (
        [getattr(a.costs, what) - getattr(b.costs, what) for a, b in pairs]
        for what in ("forward_flops", "weight_grad_flops", "input_grad_flops")
    )
    assert (sum(forward), sum(weights), sum(inputs)) == (8 * 100, 3 * 100, 8 * 100)


@pytest.mark.parametrize("dropout", [0.0, 0.1])  # with dropout, torch takes another kernel
@pytest.mark.parametrize("heads", [1, 2])
def test_attention_costs_two_products_and_four_gradients(dropout, heads):
    queries, keys, width, values = 5, 7, 4, 6

    def steps(net, x):
        q, k, v = net.q(x[:, :queries]), net.k(x), net.v(x)
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (q, k, v))
        return functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout)

    net = Net(steps, q=nn.Linear(3, width), k=nn.Linear(3, width), v=nn.Linear(3, values))
    layout = trace(
        net, torch.rand(BATCH, keys, 3), "net", {"q": ["q.*"], "k": ["k.*"], "v": ["v.*"]}
    )
    projections = 2 * 3 * (queries * width + keys * width + keys * values)
    # Heads divide the width among them.
    attention = 2 * queries * keys * (width + values)
    assert sum(layer.costs.forward_flops for layer in layout) == projections + attention
    assert sum(layer.costs.input_grad_flops for layer in layout) == 2 * attention


def test_an_embedding_is_free_forward_and_adds_each_row_backward():
    net = nn.Sequential(nn.Embedding(10, 6), nn.Flatten(), nn.Linear(30, 2))
    layout = trace(net, torch.zeros(BATCH, 5, dtype=torch.long), "net")
    found = layout["0"].costs
    assert (found.forward_flops, found.input_grad_flops, found.weight_grad_flops) == (0, 0, 30)


def test_a_bag_of_embeddings_adds_the_rows_forward_too():
    net = nn.Sequential(nn.EmbeddingBag(10, 6), nn.Linear(6, 2))
    found = trace(net, torch.zeros(BATCH, 5, dtype=torch.long), "net")["0"].costs
    assert (found.forward_flops, found.weight_grad_flops) == (30, 30)


class Last(nn.Module):
    """The last step's output of a recurrent module."""

    def __init__(self, recurrent):
        super().__init__()
        self.recurrent = recurrent

    def forward(self, inputs):
        return self.recurrent(inputs)[0][:, -1]


@pytest.mark.parametrize(("kind", "gates"), [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)])
@pytest.mark.parametrize("directions", [1, 2])
def test_a_recurrent_module_costs_its_products_over_all_steps(kind, gates, directions):
    steps, features, hidden = 5, 6, 4
    recurrent = Last(kind(features, hidden, 2, batch_first=True, bidirectional=directions == 2))
    # The state before the first step is constant: its product is no function of the input.
    from_state = (steps - 1) * gates * hidden * hidden
    first = steps * features * gates * hidden + from_state
    second = steps * directions * hidden * gates * hidden + from_state
    products = directions * (first + second)
    # The outputs of the other direction at the last step have seen that step alone.
    expected = 2 * products
    assert costs(recurrent, steps, features) == (expected,) * 3


def test_a_scale_costs_one_operation_an_element_and_a_bias_none():
    net = Net(
        lambda net, x: net.head(net.base(x) * net.scale + net.shift),
        base=nn.Linear(5, 6),
        head=nn.Linear(6, 2),
        scale=nn.Parameter(torch.ones(6)),
        shift=nn.Parameter(torch.ones(6)),
    )
    layout = trace(net, torch.rand(BATCH, 5), "net")
    found = layout["base"].costs
    assert [spec.name for spec in layout["base"].tensors] == [
        "scale",
        "shift",
        "base.weight",
        "base.bias",
    ]
    assert (found.forward_flops, found.weight_grad_flops) == (60 + 6, 60 + 6)
    assert (found.input_grad_flops, found.inner_grad_flops) == (6, 6)


def test_an_activation_times_itself_is_free_and_a_product_with_itself_has_both_gradients():
    def steps(net, x):
        hidden = net.base(x)
        return (hidden * hidden) @ hidden.transpose(1, 2) + hidden.bmm(hidden)

    net = Net(steps, base=nn.Linear(3, 4))
    found = trace(net, torch.rand(BATCH, 4, 3), "net")["base"].costs
    linear, product = 2 * 4 * 12, 2 * 4 * 4 * 4
    assert found.forward_flops == linear + 2 * product
    assert found.input_grad_flops == found.inner_grad_flops == 4 * product


def test_weights_computed_from_parameters_are_no_cost_of_an_example_but_their_use_is():
    plain = nn.Conv2d(3, 4, 3)
    standardised = nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3))
    found = [
        trace(nn.Sequential(m), torch.rand(BATCH, 3, 6, 6), "m").layers[0].costs
        for m in (plain, standardised)
    ]
    assert found[0] == found[1]
    assert found[0].weight_grad_flops == found[0].forward_flops == 2 * 4 * 16 * 27


MODELS = {
    "linear": (lambda: nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3)), (7,)),
    "conv": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3, 2)),
        (3, 9, 9),
    ),
    "transposed": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(8, 4, 3)),
        (3, 9, 9),
    ),
}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_step_of_everything_costs_what_torch_counts(model):
    build, shape = MODELS[model]
    net, batch = build(), torch.rand(BATCH, *shape)
    with FlopCounterMode(display=False) as counter:
        net(batch).sum().backward()
    layout = trace(net, batch, model)
    per_example = sum(
        layer.costs.forward_flops + layer.costs.input_grad_flops + layer.costs.weight_grad_flops
        for layer in layout
    )
    assert BATCH * per_example == counter.get_total_flops()


def test_a_fourier_transform_costs_what_fft_libraries_say():
    net = Net(
        lambda net, x: net.head(torch.fft.rfft(net.base(x)).abs()),
        base=nn.Linear(4, 16),
        head=nn.Linear(9, 2),
    )
    found = trace(net, torch.rand(BATCH, 4), "net")["base"].costs
    transform = 2.5 * 16 * 4  # 5/2 N log2 N for N real numbers
    assert found.forward_flops == 2 * 4 * 16 + transform
    assert found.inner_grad_flops == transform


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (lambda h: torch.cdist(h[:, None], h[:, None] + 1)[:, 0], "aten::_cdist_forward"),
        (lambda h: h @ torch.linalg.inv(h.T @ h), "aten::linalg_inv_ex.inverse"),
        (lambda h: torch.linalg.eigvalsh(h.T @ h)[None] * h, "aten::_linalg_eigh.eigenvalues"),
    ],
)
def test_an_operation_between_activations_without_a_formula_is_an_error_by_name(operation, name):
    net = Net(lambda net, x: net.b(operation(net.a(x))), a=nn.Linear(4, 2), b=None)
    net.b = nn.Linear(operation(torch.rand(BATCH, 2)).shape[1], 2)
    with pytest.raises(LayoutError) as caught:
        trace(net, torch.rand(BATCH, 4), "net")
    assert str(caught.value).startswith(f'model "net": the operation {name.partition(".")[0]}')
    assert str(caught.value).endswith(
        ' runs in layer "a", and there is no formula for what it costs; write the step with matrix '
        "products, convolutions, norms or products, or add a formula to tasks/tracing/flops.py"
    )


def test_an_operator_of_the_users_own_is_an_error_too():
    with torch.library._scoped_library("fedfreeze_test", "FRAGMENT") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: x * 2, "CPU")
        double = torch.ops.fedfreeze_test.double
        net = Net(lambda net, x: net.b(double(x)), b=nn.Linear(4, 2))
        with pytest.raises(LayoutError) as caught:
            trace(net, torch.rand(BATCH, 4), "net")
    assert str(caught.value).startswith(
        'model "net": the operation fedfreeze_test::double runs in layer "b", and there is no'
    )


@pytest.mark.parametrize(
    "operation",
    [
        torch.sigmoid,
        functional.gelu,
        lambda h: h.softmax(-1),
        lambda h: functional.max_pool1d(h[:, None], 2)[:, 0],
        lambda h: h.cumsum(1).roll(1, 1),
        lambda h: torch.cat([h, h.flip(1)], 1).sort(1).values,
        lambda h: functional.interpolate(h[:, None], scale_factor=2.0)[:, 0],
        lambda h: functional.pad(h, (1, 2)),
        lambda h: functional.dropout(h, 0.5),
        lambda h: h - h.mean(1, keepdim=True) / h.std(1, keepdim=True),
    ],
)
def test_what_touches_each_element_a_few_times_is_free(operation):
    net = Net(lambda net, x: net.b(operation(net.a(x))), a=nn.Linear(4, 8), b=None)
    net.b = nn.Linear(operation(torch.rand(BATCH, 8)).shape[1], 2)
    layout = trace(net, torch.rand(BATCH, 4), "net")
    products = [4 * 8, net.b.in_features * 2]
    assert [layer.costs.forward_flops for layer in layout] == [2 * n for n in products]


def test_a_product_of_complex_numbers_costs_four_of_real_ones():
    """A spectral layer: (a + bi)(c + di) has four products and two sums, and is added to others."""
    modes, inner, outer = 5, 3, 4

    def steps(net, x):
        spectrum = torch.fft.rfft(net.base(x))
        mixed = torch.einsum("bix,iox->box", spectrum, torch.view_as_complex(net.weight))
        return net.head(torch.view_as_real(mixed).flatten(1))

    net = Net(
        steps,
        base=nn.Conv1d(2, inner, 1, bias=False),
        weight=nn.Parameter(torch.rand(inner, outer, modes, 2)),
        head=nn.Linear(2 * outer * modes, 2),
    )
    layout = trace(
        net, torch.rand(BATCH, 2, 8), "net", {"a": ["base.*"], "b": ["weight", "head.*"]}
    )
    product, head = 8 * inner * outer * modes, 2 * 2 * outer * modes * 2
    found = layout["b"].costs
    assert (found.forward_flops, found.weight_grad_flops) == (product + head,) * 2
    assert found.input_grad_flops == product + head
