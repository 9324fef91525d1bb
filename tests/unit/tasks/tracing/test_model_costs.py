"""Operations of whole models against formulas worked out from their shapes alone.

Counted are matrix products and convolutions (2 a product), norms (8 an element forward and towards
the input, 3 for scale and shift) and the gradient of looked-up words (1 an element).
"""

from dataclasses import dataclass, replace

import pytest
import torch

from device_profiles.cost import training_flops
from tasks.loading import load
from tasks.options import Options
from tasks.tracing import trace
from tests.unit.tasks.tracing.small_nets import six


@dataclass
class Part:
    """Operations of one part of a model, forward and towards its inputs and weights.

    ``left_out`` is what the convention does not count: biases, activations, softmax, sums.
    """

    forward: float = 0.0
    inputs: float = 0.0
    weights: float = 0.0
    left_out: float = 0.0

    def __add__(self, other):
        return Part(
            self.forward + other.forward,
            self.inputs + other.inputs,
            self.weights + other.weights,
            self.left_out + other.left_out,
        )

    def __mul__(self, times):
        return Part(*(times * part for part in vars(self).values()))

    def first(self):
        """Nothing before it needs a gradient."""
        return replace(self, inputs=0.0)


def product(flops, *, outputs=0, pointwise=0):
    return Part(flops, flops, flops, outputs + pointwise)


def linear(rows, inputs, outputs, *, pointwise=0):
    return product(2 * rows * inputs * outputs, outputs=rows * outputs, pointwise=pointwise)


def convolution(taps, inputs, outputs, side, *, pointwise=0):
    return product(2 * taps * inputs * outputs * side**2, pointwise=pointwise)


def norm(elements):
    return Part(8 * elements, 8 * elements, 3 * elements, 0)


def attention(rows, width, heads):
    scores = 2 * rows * rows * width
    return Part(2 * scores, 4 * scores, 0, 5 * heads * rows * rows)


def transformer_block(rows, width, inner, heads):
    """Four projections, two norms, two sums; GELU counts 10 an element."""
    return (
        linear(rows, width, width) * 4
        + attention(rows, width, heads)
        + linear(rows, width, inner, pointwise=10 * rows * inner)
        + linear(rows, inner, width)
        + norm(rows * width) * 2
        + Part(left_out=2 * rows * width)
    )


def fashion_cnn():
    def relu_convolution(taps, inputs, outputs, side):
        return convolution(taps, inputs, outputs, side, pointwise=2 * outputs * side**2)

    return {
        "stem": relu_convolution(25, 1, 16, 14).first(),
        "conv2": relu_convolution(9, 16, 32, 7),
        "conv3": relu_convolution(9, 32, 32, 7),
        "conv4": relu_convolution(9, 32, 48, 4),
        "fc": linear(1, 768, 96, pointwise=96),
        "head": linear(1, 96, 10),
    }


def resnet18():
    def block(inputs, outputs, side):
        shape = outputs * side**2
        both = convolution(9, inputs, outputs, side) + convolution(9, outputs, outputs, side)
        both = both + norm(shape) * 2 + Part(left_out=3 * shape)
        if inputs == outputs:
            return both
        return both + convolution(1, inputs, outputs, side) + norm(shape)

    parts = {
        "conv1": convolution(9, 3, 64, 32).first(),
        "bn1": norm(64 * 32**2) + Part(left_out=64 * 32**2),
        "layer1": block(64, 64, 32) * 2,
        "layer2": block(64, 128, 16) + block(128, 128, 16),
        "layer3": block(128, 256, 8) + block(256, 256, 8),
        "layer4": block(256, 512, 4) + block(512, 512, 4),
        "fc": linear(1, 512, 10),
    }
    # The norm behind the first convolution belongs to its layer.
    parts["conv1"] += parts.pop("bn1")
    return parts


def vit_tiny():
    width, patches = 192, 64
    tokens = patches + 1
    return {
        "patch_embed": convolution(16, 3, width, 8).first(),
        **{
            f"blocks.{at}": transformer_block(tokens, width, 4 * width, heads=3) for at in range(12)
        },
        "head": norm(tokens * width) + linear(1, width, 10),
    }


def minilm():
    width, length = 384, 128
    words = Part(weights=length * width)
    return {
        "bert.embeddings": words + norm(length * width),
        **{
            f"bert.encoder.layer.{at}": transformer_block(length, width, 4 * width, heads=12)
            for at in range(6)
        },
        "head": linear(1, width, 8),
    }


MODELS = {
    "fashion-cnn": ("fashion-cnn", fashion_cnn),
    "resnet18-gn": ("cifar10", resnet18),
    "vit-tiny": ("cifar10", vit_tiny),
    "minilm": ("reuters-r8-minilm", minilm),
}


@pytest.fixture(scope="module", params=sorted(MODELS))
def model(request):
    task, formulas = MODELS[request.param]
    return load(task, Options(model=request.param)).layout(), formulas()


def part_of(layer, parts):
    (found,) = (part for part in parts if layer == part or layer.startswith(f"{part}."))
    return found


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
