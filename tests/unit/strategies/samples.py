"""A small model and a board with room to spare: what most tests of this room start from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fedfreeze.capacity import Capacity, Known
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from strategies.freeze.policy import ClientView
from strategies.means import Means
from strategies.outlook import Outlook
from strategies.planner import Limits, Load

LIMITS = Limits(
    epochs=3,
    batch_size=10,
    optimizer_slots=0,
    upload_time_s=1.0,
    full_upload_bytes=300,
    dense_bits=None,
    deadline_s=60.0,
    smallest_packet_bytes=40,
)
LOAD = Load(examples=100, download_bytes=5_000, envelope_bytes=1_000)


def stack(**sizes: int) -> Layout:
    """Layers of one vector each; by default stem 100, body 200, tail 400, head 50.

    A layer of n parameters costs 2 n operations forward, 2 n for each gradient, and a megabyte of
    activations an example.
    """
    return Layout(
        "stack",
        tuple(
            Layer(
                name,
                (TensorSpec(f"{name}.w", (n,), "float32"),),
                LayerCosts(2.0 * n, 2.0 * n, 2.0 * n, 1e6),
            )
            for name, n in (sizes or {"stem": 100, "body": 200, "tail": 400, "head": 50}).items()
        ),
    )


def with_buffers() -> Layout:
    """Two layers with everything that a model may hold: a scalar, a running mean, a counter."""
    return Layout(
        "buffered",
        (
            Layer(
                "norm",
                (
                    TensorSpec("norm.weight", (2, 2), "float32"),
                    TensorSpec("norm.scale", (), "float32"),
                    TensorSpec("norm.mean", (2,), "float32", "buffer"),
                    TensorSpec("norm.batches", (), "int64", "buffer"),
                ),
            ),
            Layer("head", (TensorSpec("head.weight", (3,), "float16"),)),
        ),
    )


def board(
    *, flops: float = 1e9, memory: float = 1e9, uplink: float = 1e6, downlink: float = 1e6
) -> Capacity:
    """A capacity in base units; ample for every layout here."""
    known = (Known(value, "profile") for value in (flops, memory, uplink, downlink))
    return Capacity(*known)


def client_of(
    layout: Layout,
    device_id: str = "b0",
    *,
    capacity: Capacity | None = None,
    limits: Limits = LIMITS,
    feasible: Mapping[str, bool] | None = None,
) -> ClientView:
    """A client as policies see it, by default on a board with room for all layers."""
    capacity = capacity or board()
    return ClientView(
        device_id,
        capacity,
        LOAD.examples,
        dict.fromkeys(layout.names, True) if feasible is None else feasible,
        Outlook(Means(layout, capacity, limits, LOAD)),
    )


def constant(layout: Layout, value: float) -> dict[str, np.ndarray]:
    """The tensors of a model, every value the same."""
    return {t.name: np.full(t.shape, value, t.dtype) for t in layout.tensors.values()}
