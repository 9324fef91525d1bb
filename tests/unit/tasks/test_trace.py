"""Traces against autograd itself, and the models that cannot be traced."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from device_profiles.cost import training_flops
from fedfreeze.errors import LayoutError
from fedfreeze.layout import TensorSpec
from tasks.fashion_cnn import FashionNet
from tasks.trace import trace


def six() -> nn.Module:
    layers = [module for _ in range(6) for module in (nn.Linear(256, 256), nn.ReLU())]
    return nn.Sequential(*layers)


class Net(nn.Module):
    """Children by keyword; ``steps`` runs them."""

    def __init__(self, steps, **children):
        super().__init__()
        self.steps = steps
        for name, child in children.items():
            self.add_module(name, child)

    def forward(self, inputs):
        return self.steps(self, inputs)


CHAINS = {"six": (six, (4, 256)), "fashion-cnn": (FashionNet, (4, 1, 28, 28))}


def kept_bytes(model: nn.Module, batch: torch.Tensor) -> int:
    """What one forward pass really keeps, each storage once and parameters apart."""
    own = {parameter.data_ptr() for parameter in model.parameters()}
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = model(batch)
    assert output.shape
    return sum(t.untyped_storage().nbytes() for at, t in kept.items() if at not in own)


def freeze_below(model: nn.Module, names: tuple[str, ...], shallowest: int) -> None:
    for place, name in enumerate(names):
        for parameter in model.get_submodule(name).parameters():
            parameter.requires_grad = place >= shallowest


@pytest.mark.parametrize("model", sorted(CHAINS))
def test_activations_from_any_layer_on_are_what_autograd_keeps(model):
    build, shape = CHAINS[model]
    layout = trace(build(), torch.rand(shape), model)
    for shallowest in range(len(layout)):
        net = build()
        freeze_below(net, layout.names, shallowest)
        predicted = sum(layer.costs.activation_bytes for layer in layout.layers[shallowest:])
        assert predicted * shape[0] == kept_bytes(net, torch.rand(shape))


def test_six_equal_layers_keep_seven_activations():
    layout = trace(six(), torch.rand(2, 256), "six")
    assert [layer.costs.activation_bytes for layer in layout] == [1024] * 5 + [2048]


def counted_flops(net: nn.Module, trained: tuple[str, ...], batch: torch.Tensor) -> int:
    for name, child in net.named_children():
        child.requires_grad_(name in trained)
    with FlopCounterMode(display=False) as counter:
        net(batch).sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("model", sorted(CHAINS))
@pytest.mark.parametrize("pick", [slice(None), slice(-1, None), slice(0, 1), slice(1, None, 2)])
def test_operations_of_any_frozen_set_are_what_torch_counts(model, pick):
    build, shape = CHAINS[model]
    layout = trace(build(), torch.rand(shape), model)
    trained = layout.names[pick]
    counted = counted_flops(build(), trained, torch.rand(shape))
    assert training_flops(layout, trained, shape[0]) == counted


def test_operations_of_parallel_branches_are_exact_or_an_upper_bound():
    def steps(net, x):
        return net.head(torch.relu(net.left(x)) * torch.sigmoid(net.right(x)))

    net = Net(steps, head=nn.Linear(8, 3), left=nn.Linear(5, 8), right=nn.Linear(5, 8))
    batch = torch.rand(4, 5)
    layout = trace(net, batch, "branches")
    assert layout.names == ("left", "right", "head")
    assert training_flops(layout, layout.names, 4) == counted_flops(net, layout.names, batch)
    for frozen in layout.names:
        trained = tuple(name for name in layout.names if name != frozen)
        assert training_flops(layout, trained, 4) >= counted_flops(net, trained, batch)


def test_costs_do_not_depend_on_the_batch():
    costs = [
        [layer.costs for layer in trace(FashionNet(), torch.rand(n, 1, 28, 28), "net")]
        for n in (1, 5)
    ]
    assert costs[0] == costs[1]


def test_layers_stand_in_the_order_in_which_they_run():
    net = Net(
        lambda net, x: net.a(torch.relu(net.c(torch.relu(net.b(x))))),
        a=nn.Linear(3, 2),
        b=nn.Linear(4, 3),
        c=nn.Linear(3, 3),
    )
    assert trace(net, torch.rand(2, 4), "net").names == ("b", "c", "a")


def test_children_without_tensors_are_no_layers():
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5), nn.Linear(3, 2))
    assert trace(net, torch.rand(2, 2, 2), "net").names == ("1", "4")


def test_what_runs_between_two_children_is_charged_to_the_one_before():
    def steps(net, x):
        return net.b(torch.sigmoid(torch.exp(net.a(x))))

    layout = trace(Net(steps, a=nn.Linear(4, 8), b=nn.Linear(8, 2)), torch.rand(2, 4), "net")
    # a keeps its input and exp's output; sigmoid's output is b's input, and so is kept by b.
    assert [layer.costs.activation_bytes for layer in layout] == [4 * (4 + 8), 4 * 8]


def test_only_the_first_layer_needs_no_gradient_of_its_input():
    layout = trace(six(), torch.rand(2, 256), "six")
    assert [layer.costs.input_grad_flops > 0 for layer in layout] == [False] + [True] * 5


def test_a_layer_lists_parameters_and_buffers_as_the_state_does():
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


def test_a_parameter_tied_inside_one_child_is_listed_once():
    tied = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    tied[1].weight = tied[0].weight
    layout = trace(nn.Sequential(tied), torch.rand(2, 4), "net")
    assert [spec.name for spec in layout["0"].tensors] == ["0.0.weight", "0.0.bias", "0.1.bias"]


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
    assert not net[0]._forward_pre_hooks


def refused(net: nn.Module) -> str:
    with pytest.raises(LayoutError) as caught:
        trace(net, torch.rand(2, 4), "net")
    return str(caught.value)


def test_a_child_that_never_runs_is_named():
    net = Net(lambda net, x: net.a(x), a=nn.Linear(4, 2), spare=nn.Linear(4, 2))
    assert refused(net) == (
        'model "net": child "spare" never ran in the forward pass; use it or remove it'
    )


def test_a_child_without_gradient_is_named():
    def steps(net, x):
        return net.a(x) + net.b(x).detach()

    assert refused(Net(steps, a=nn.Linear(4, 2), b=nn.Linear(4, 2))) == (
        'model "net": child "b" got no gradient for "weight"; '
        "use the parameter on the way to the output, or remove it"
    )


def test_a_parameter_shared_by_two_children_is_named():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    assert refused(nn.Sequential(first, second)) == (
        'model "net": children "0" and "1" share the tensor "1.weight"; '
        "put both into one child, so that they freeze together"
    )


def test_a_model_whose_output_is_cut_off_names_the_first_child():
    net = Net(lambda net, x: net.a(x).detach(), a=nn.Linear(4, 2))
    assert refused(net) == (
        'model "net": child "a" got no gradient for "weight"; '
        "use the parameter on the way to the output, or remove it"
    )


def test_a_child_that_stands_under_two_names_is_named():
    one = nn.Linear(4, 4)
    assert refused(nn.Sequential(one, nn.ReLU(), one)) == (
        'model "net": children "0" and "2" share the tensor "2.weight"; '
        "put both into one child, so that they freeze together"
    )


def test_a_parameter_outside_all_children_is_named():
    net = Net(lambda net, x: net.a(x) * net.scale, a=nn.Linear(4, 2))
    net.scale = nn.Parameter(torch.ones(2))
    assert refused(net) == (
        'model "net": tensor "scale" lies in no child module; '
        "move it into one, so that it belongs to a layer"
    )


def test_a_module_without_a_formula_is_named():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.ones(4))

        def forward(self, inputs):
            return inputs * self.factor

    net = nn.Sequential(nn.Sequential(nn.Linear(4, 4), Scale()))
    assert refused(net) == (
        'layer "0.1": no formula for the cost of Scale; '
        "use convolutions, linear layers and norms, or add one to tasks/flops.py"
    )


def test_parameters_used_behind_their_modules_back_are_named():
    class Sly(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 2)

        def forward(self, inputs):
            return functional.linear(inputs, self.inner.weight, self.inner.bias)

    assert refused(nn.Sequential(Sly())) == (
        'model "net": the parameters of "0.inner" are used without calling the module, '
        "so their cost is unknown; call the module"
    )


def test_a_model_must_return_one_tensor():
    net = Net(lambda net, x: (net.a(x), x), a=nn.Linear(4, 2))
    assert refused(net) == 'model "net" must return one tensor, it returned tuple'


def test_a_model_without_tensors_is_no_model():
    assert refused(nn.Sequential(nn.ReLU())) == (
        'model "net" has no layer: no child of it owns a tensor'
    )
