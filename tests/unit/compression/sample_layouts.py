"""Small layouts with every kind of tensor that a codec meets."""

from __future__ import annotations

import numpy as np

from fedfreeze.layout import Layer, Layout, TensorSpec


def mixed() -> Layout:
    """Three layers: float and integer buffers, a scalar, an empty tensor."""
    return Layout(
        "mixed",
        (
            Layer(
                "stem",
                (
                    TensorSpec("stem.weight", (40, 25), "float32"),
                    TensorSpec("stem.scale", (), "float32"),
                    TensorSpec("stem.mean", (8,), "float32", "buffer"),
                    TensorSpec("stem.batches", (), "int64", "buffer"),
                ),
            ),
            Layer("body", (TensorSpec("body.weight", (300, 10), "float32"),)),
            Layer(
                "head",
                (
                    TensorSpec("head.weight", (30,), "float32"),
                    TensorSpec("head.none", (0, 3), "float32"),
                ),
            ),
        ),
    )


def line(size: int) -> Layout:
    """One layer "all" with one vector "w"."""
    return Layout("line", (Layer("all", (TensorSpec("w", (size,), "float32"),)),))


def heavy_update(layout: Layout, seed: int, scale: float = 1.0) -> dict[str, np.ndarray]:
    """Heavy-tailed values for every float tensor, another spread in each."""
    rng = np.random.default_rng(seed)
    return {
        t.name: np.asarray(rng.laplace(size=t.shape) ** 3 * scale / (1 + place), np.float32)
        for place, t in enumerate(layout.tensors.values())
        if t.is_float
    }


def network() -> Layout:
    """A small network: two matrices, a convolution, and small vectors beside them."""
    shapes = {
        "conv": ((16, 8, 3, 3), (16,)),
        "body": ((40, 64), (40,)),
        "head": ((10, 120), (10,)),
    }
    return Layout(
        "network",
        tuple(
            Layer(
                name,
                (
                    TensorSpec(f"{name}.weight", weight, "float32"),
                    TensorSpec(f"{name}.bias", bias, "float32"),
                ),
            )
            for name, (weight, bias) in shapes.items()
        ),
    )


def crowded_update(layout: Layout, seed: int) -> dict[str, np.ndarray]:
    """Values that crowd in some rows and columns, as those of real networks do."""
    rng = np.random.default_rng(seed)
    update = {}
    for t in layout.tensors.values():
        values = rng.laplace(size=t.shape)
        for axis, length in enumerate(t.shape[:2]):
            loud = np.exp(rng.normal(0, 1.5, length))
            values = values * loud.reshape([-1 if a == axis else 1 for a in range(len(t.shape))])
        update[t.name] = np.asarray(values, np.float32)
    return update
