"""Operations of whole models against formulas worked out from their shapes alone."""

import pytest
import torch

from device_profiles.cost import training_flops
from experiments.devices.case import task_of
from experiments.devices.formulas import FORMULAS, Part, part_of
from tasks.tracing import trace
from tests.unit.tasks.tracing.small_nets import six


@pytest.fixture(scope="module", params=sorted(FORMULAS))
def model(request):
    return task_of(request.param).layout(), FORMULAS[request.param]()


def test_every_part_of_a_model_costs_what_its_shapes_say(model):
    layout, parts = model
    traced = {part: Part() for part in parts}
    for layer in layout:
        costs = layer.costs
        traced[part_of(layer.name, parts)] += Part(
            costs.forward_flops, costs.input_grad_flops, costs.weight_grad_flops
        )
    for name, part in parts.items():
        expected = part.forward, part.inputs, part.weights
        found = traced[name].forward, traced[name].inputs, traced[name].weights
        assert found == pytest.approx(expected, rel=0.02), name


def test_what_the_convention_leaves_out_is_less_than_2_per_cent(model):
    layout, parts = model
    everything = sum(part.forward + part.left_out for part in parts.values())
    traced = sum(layer.costs.forward_flops for layer in layout)
    assert traced == pytest.approx(everything, rel=0.02)
    assert traced < everything


@pytest.mark.parametrize("kind", ["full", "prefix frozen", "suffix frozen", "scattered"])
def test_a_step_of_any_plan_costs_what_the_formulas_say(model, kind):
    layout, parts = model
    half = len(parts) // 2
    names = list(parts)
    chosen = {
        "full": names,
        "prefix frozen": names[half:],
        "suffix frozen": names[:half],
        "scattered": names[1::3],
    }[kind]
    trained = [layer.name for layer in layout if part_of(layer.name, parts) in chosen]
    lowest = names.index(chosen[0])
    expected = (
        sum(part.forward for part in parts.values())
        + sum(parts[name].inputs for name in names[lowest + 1 :])
        + sum(parts[name].weights for name in chosen)
    )
    inside = parts[chosen[0]].inputs  # at most this much more, within the lowest part itself
    found = training_flops(layout, trained, 1)
    assert expected * 0.98 <= found <= (expected + inside) * 1.02


# Of training all six: 17 units of operations and 7 activations, the input and six outputs.
@pytest.mark.parametrize(
    ("trained", "operations", "kept"),
    [
        ((0, 1, 2, 3, 4, 5), 17 / 17, 7 / 7),
        ((3, 4, 5), 11 / 17, 4 / 7),
        ((5,), 7 / 17, 2 / 7),
        ((0, 1, 2), 14 / 17, 7 / 7),
        ((0, 1, 4, 5), 15 / 17, 7 / 7),
        ((0, 2, 4), None, 7 / 7),
    ],
)
def test_six_equal_layers_save_what_arithmetic_says(trained, operations, kept):
    layout = trace(six(), torch.rand(2, 256), "six")
    names = [layout.names[place] for place in trained]
    if operations is not None:
        ratio = training_flops(layout, names, 1) / training_flops(layout, layout.names, 1)
        assert ratio == pytest.approx(operations)
    reached = layout.layers[trained[0] :]
    held = sum(
        layer.costs.activation_bytes - (layer.name not in names) * layer.costs.spared_bytes
        for layer in reached
    )
    whole = sum(layer.costs.activation_bytes for layer in layout)
    assert held / whole == pytest.approx(kept)


def test_one_bias_that_trains_before_a_frozen_prefix_brings_its_activations_back():
    groups = {"weight": ["0.weight"], "bias": ["0.bias"]}
    groups |= {f"l{at}": [f"{2 * at}.*"] for at in range(1, 6)}
    layout = trace(six(), torch.rand(2, 256), "six", groups)
    names = {"bias", "l3", "l4", "l5"}
    held = sum(
        layer.costs.activation_bytes - (layer.name not in names) * layer.costs.spared_bytes
        for layer in layout
    )
    # Six outputs of ReLU; of seven, the input alone is not kept.
    assert held == 6 * 1024
