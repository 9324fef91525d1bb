"""Operations of whole models, worked out from their shapes alone: what traced costs are held to.

Counted are matrix products and convolutions (2 a product), norms (8 an element forward and towards
the input, 3 for scale and shift) and the gradient of looked-up words (1 an element). Nothing here
looks at a model, or at what torch counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Part:
    """Operations of one part of a model for an example, forward and towards inputs and weights.

    ``left_out`` is what the convention does not count: biases, activations, softmax, sums.
    """

    forward: float = 0.0
    inputs: float = 0.0
    weights: float = 0.0
    left_out: float = 0.0

    def __add__(self, other: Part) -> Part:
        return Part(
            self.forward + other.forward,
            self.inputs + other.inputs,
            self.weights + other.weights,
            self.left_out + other.left_out,
        )

    def __mul__(self, times: int) -> Part:
        return Part(*(times * part for part in vars(self).values()))

    def first(self) -> Part:
        """Nothing before it needs a gradient."""
        return replace(self, inputs=0.0)


def product(flops: float, *, outputs: float = 0, pointwise: float = 0) -> Part:
    """A product costs as much backward, once for each of its factors."""
    return Part(flops, flops, flops, outputs + pointwise)


def linear(rows: int, inputs: int, outputs: int, *, pointwise: float = 0) -> Part:
    """A dense layer on so many rows."""
    return product(2 * rows * inputs * outputs, outputs=rows * outputs, pointwise=pointwise)


def convolution(taps: int, inputs: int, outputs: int, side: int, *, pointwise: float = 0) -> Part:
    """A square map of ``side`` comes out."""
    return product(2 * taps * inputs * outputs * side**2, pointwise=pointwise)


def norm(elements: int) -> Part:
    """With scale and shift."""
    return Part(8 * elements, 8 * elements, 3 * elements, 0)


def attention(rows: int, width: int, heads: int) -> Part:
    """Two products forward, four backward, and softmax."""
    scores = 2 * rows * rows * width
    return Part(2 * scores, 4 * scores, 0, 5 * heads * rows * rows)


def transformer_block(rows: int, width: int, inner: int, heads: int) -> Part:
    """Four projections, two norms, two sums; GELU counts 10 an element."""
    return (
        linear(rows, width, width) * 4
        + attention(rows, width, heads)
        + linear(rows, width, inner, pointwise=10 * rows * inner)
        + linear(rows, inner, width)
        + norm(rows * width) * 2
        + Part(left_out=2 * rows * width)
    )


def fashion_cnn() -> dict[str, Part]:
    """Four convolutions and two dense layers on 28x28 pixels."""

    def relu_convolution(taps: int, inputs: int, outputs: int, side: int) -> Part:
        return convolution(taps, inputs, outputs, side, pointwise=2 * outputs * side**2)

    return {
        "stem": relu_convolution(25, 1, 16, 14).first(),
        "conv2": relu_convolution(9, 16, 32, 7),
        "conv3": relu_convolution(9, 32, 32, 7),
        "conv4": relu_convolution(9, 32, 48, 4),
        "fc": linear(1, 768, 96, pointwise=96),
        "head": linear(1, 96, 10),
    }


def resnet18() -> dict[str, Part]:
    """On 32x32 pixels, with a first convolution of 3x3 and no pooling behind it."""

    def block(inputs: int, outputs: int, side: int) -> Part:
        shape = outputs * side**2
        both = convolution(9, inputs, outputs, side) + convolution(9, outputs, outputs, side)
        both = both + norm(shape) * 2 + Part(left_out=3 * shape)
        if inputs == outputs:
            return both
        return both + convolution(1, inputs, outputs, side) + norm(shape)

    # The norm behind the first convolution belongs to its layer.
    first_norm = norm(64 * 32**2) + Part(left_out=64 * 32**2)
    return {
        "conv1": convolution(9, 3, 64, 32).first() + first_norm,
        "layer1": block(64, 64, 32) * 2,
        "layer2": block(64, 128, 16) + block(128, 128, 16),
        "layer3": block(128, 256, 8) + block(256, 256, 8),
        "layer4": block(256, 512, 4) + block(512, 512, 4),
        "fc": linear(1, 512, 10),
    }


def vit_tiny() -> dict[str, Part]:
    """Patches of 4x4 of 32x32 pixels, and a class token."""
    width, patches = 192, 64
    tokens = patches + 1
    return {
        "patch_embed": convolution(16, 3, width, 8).first(),
        **{
            f"blocks.{at}": transformer_block(tokens, width, 4 * width, heads=3) for at in range(12)
        },
        "head": norm(tokens * width) + linear(1, width, 10),
    }


def minilm() -> dict[str, Part]:
    """Six blocks of BERT's kind on 128 tokens."""
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


# By model of `case.TASK_OF`.
FORMULAS = {
    "fashion-cnn": fashion_cnn,
    "resnet18-gn": resnet18,
    "vit-tiny": vit_tiny,
    "minilm": minilm,
}


def part_of(layer: str, parts: Mapping[str, Part]) -> str:
    """The one part that a layer belongs to, by name."""
    (found,) = (part for part in parts if layer == part or layer.startswith(f"{part}."))
    return found
