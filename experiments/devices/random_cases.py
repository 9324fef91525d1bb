"""Random boards, models and limits for the planner: each can do some of what is asked."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from device_profiles.board import load_board
from device_profiles.cost import training_flops, training_memory_bytes
from fedfreeze.capacity import Capacity, Known
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from fedfreeze.plan import Reason
from strategies.bounds import Limits, Load, splits_of
from strategies.freeze.policy import Advice, StageAdvice

BOARD = load_board("rpi-4b-4gb")


def random_case(seed: int, layers: int | None = None) -> dict[str, Any]:
    """The arguments of :func:`strategies.planner.fit` for a board that can do some of it.

    Every limit is drawn around what the whole model takes.

    Args:
        seed: of everything.
        layers: how many; 1 to 9 unless given.
    """
    rng = np.random.default_rng(seed)
    count = layers or int(rng.integers(1, 10))
    layout = Layout(
        "any",
        tuple(
            Layer(
                f"l{at}",
                (
                    TensorSpec(f"l{at}.w", (int(rng.integers(1, 4_000)),), "float32"),
                    TensorSpec(f"l{at}.b", (int(rng.choice([0, 0, 3, 40])),), "float32", "buffer"),
                ),
                LayerCosts(
                    *(float(n) for n in rng.integers(0, 10**6, 3)), float(rng.integers(10**5))
                ),
            )
            for at in range(count)
        ),
    )
    epochs, batch = int(rng.integers(1, 5)), int(rng.integers(1, 13))
    examples, slots = int(rng.integers(1, 200)), int(rng.integers(0, 3))
    flops = training_flops(layout, layout.names, examples)
    memory = [
        training_memory_bytes(layout, names, batch, slots) for names in (["l0"], layout.names)
    ]
    around = [0.5, 0.8, 0.95, 1.1, 2.0, 5.0]
    epoch_s = 10 * rng.choice([0.1, 0.3, 0.6, 0.9, 1.2, 1.6])
    speed = flops / epoch_s
    full = int(rng.integers(44, 400))
    some = lambda value: float(value) if rng.random() < 0.3 else None  # noqa: E731
    limits = Limits(
        epochs=epochs,
        batch_size=batch,
        optimizer_slots=slots,
        upload_time_s=5.0,
        full_upload_bytes=full,
        dense_bits=None,
        deadline_s=12.0,
        smallest_packet_bytes=44,
        splits=splits_of(batch, least=1) if rng.random() < 0.3 else (1,),
        flops_per_round=some(flops * rng.choice(around)),
        upload_bytes_per_round=int(rng.integers(60, 600)) if rng.random() < 0.2 else None,
        energy_j_per_round=some(4.0 + epoch_s * BOARD.power.compute.value * rng.choice(around)),
    )
    sizes = sum(layer.parameter_count for layer in layout)
    if rng.random() < 0.2:
        dense = {"dense_bits": 8, "full_upload_bytes": 44 + sizes + 40 * count}
        limits = Limits(**{**limits.__dict__, **dense})
    uplink = (limits.full_upload_bytes + 20) / 5 * rng.choice([0.4, 0.7, 0.95, 2.0, 20.0])
    ceiling = memory[0] + (memory[1] - memory[0]) * rng.choice([0.2, 0.5, 0.8, 1.5])
    if rng.random() < 0.5:
        alone = [training_memory_bytes(layout, [n], batch, slots) for n in layout.names]
        ceiling = rng.uniform(min(alone), memory[1])
    # Few different ones, so that sets of equal worth have to be told apart.
    values = {name: float(rng.choice([0.0, 0.5, 0.5, 1.0])) for name in layout.names}
    values[layout.names[int(rng.integers(count))]] = 1.0
    return {
        "advice": Advice(
            frozen={n: Reason("score", "settled") for n in layout.names[1:] if rng.random() < 0.1},
            values=values,
            must_train=tuple(n for n in layout.names if rng.random() < 0.1),
            stages=_stages(rng, layout.names) if rng.random() < 0.3 else (),
        ),
        "layout": layout,
        "capacity": Capacity(*(Known(float(v), "profile") for v in (speed, ceiling, uplink, 1e3))),
        "limits": limits,
        "load": Load(examples, int(rng.integers(0, 2_000)), 20, BOARD),
    }


def _stages(rng: np.random.Generator, names: tuple[str, ...]) -> tuple[StageAdvice, ...]:
    cuts = sorted({0, 4, *rng.integers(0, 5, 2).tolist()})
    return tuple(
        StageAdvice((end - begin) / 4, tuple(n for n in names if rng.random() < 0.6) or names[-1:])
        for begin, end in pairwise(cuts)
    )
