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
