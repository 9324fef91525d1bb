"""The planner on models of 60 layers: how far its plans are from a bound, and how long they take.

Layers, values and boards are random; of memory, uplink and time, each board has about as much as a
half of the model takes. The bound is the least that the Lagrangian relaxation gives in a long
descent, the highest over the shallowest trained layers; no plan can be worth more. Where even the
best set is further from it than the target, as a search without limits proves, the plan must be
that set. Times are thread CPU time, once with a layout that was never planned for (its costs are
looked up first) and then again.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
from numpy.typing import NDArray
from section import Say, Section

from device_profiles.cost import training_flops, training_memory_bytes
from fedfreeze.capacity import Capacity, Known
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from strategies.freeze.policy import Advice
from strategies.knapsack import pack
from strategies.planner import Limits, Load, fit

LAYERS = 60
MOST_GAP, MOST_MS = 0.01, 20.0
BATCH, SLOTS, EXAMPLES = 16, 1, 500
FULL_BYTES, ENVELOPE_BYTES, DEADLINE_S = 60_000, 2_000, 60.0
DESCENT = 2_000
SCALE, ENOUGH = 2**20, 1_000_000


def random_model(rng: np.random.Generator) -> Layout:
    """Layers of three tensors each, deeper ones the larger."""

    def layer(at: int) -> Layer:
        size = int(rng.integers(1_000, 4_000)) * (1 + at // 10)
        flops = float(rng.integers(10**5, 10**6))
        tensors = tuple(TensorSpec(f"l{at}.{n}", (size // 3,), "float32") for n in "qkv")
        return Layer(f"l{at}", tensors, LayerCosts(flops, flops, flops, float(rng.integers(3e4))))

    return Layout("random", tuple(layer(at) for at in range(LAYERS)))


def random_board(rng: np.random.Generator, layout: Layout) -> Capacity:
    """Each resource for about half of the model."""
    deep = layout.names[LAYERS // 2 :]
    memory = training_memory_bytes(layout, deep, BATCH, SLOTS) * rng.uniform(0.9, 1.2)
    flops = training_flops(layout, deep, EXAMPLES) * rng.uniform(0.8, 1.3)
    uplink = FULL_BYTES * rng.uniform(0.4, 0.9) + ENVELOPE_BYTES
    values = (flops / (DEADLINE_S - 1), memory, uplink, 1e9)
    return Capacity(*(Known(float(value), "profile") for value in values))


def resources(layout: Layout, board: Capacity) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each layer takes, and what is left for it and all above it: float64[3, K] both."""
    names = layout.names
    speed, uplink = board.flops_per_s.value, board.uplink_bytes_per_s.value
    first = training_memory_bytes(layout, names[:1], BATCH, SLOTS)
    together = [training_memory_bytes(layout, (names[0], n), BATCH, SLOTS) for n in names[1:]]
    memory = [0.0, *(size - first for size in together)]
    parameters = np.array([layer.parameter_count for layer in layout])
    packet = FULL_BYTES * parameters / layout.parameter_count
    work = EXAMPLES * np.array([layer.costs.weight_grad_flops for layer in layout])
    takes = np.array([memory, packet, work / speed + packet / uplink])
    alone = np.array([training_memory_bytes(layout, (name,), BATCH, SLOTS) for name in names])
    reach = np.array([training_flops(layout, (name,), EXAMPLES) for name in names]) - work
    most = min(uplink - ENVELOPE_BYTES, FULL_BYTES)
    left_s = DEADLINE_S - reach / speed - ENVELOPE_BYTES / uplink
    room = [board.memory_bytes.value - alone + memory, np.full(LAYERS, most), left_s]
    return takes, np.array(room)


def lagrangian_bound(
    values: NDArray[np.float64], takes: NDArray[np.float64], room: NDArray[np.float64]
) -> float:
    """What no plan's sum of values exceeds."""
    highest = 0.0
    for at in range(LAYERS):
        left = room[:, at] - takes[:, at]
        if (left >= 0).all():
            above = _relaxed(values[at + 1 :], takes[:, at + 1 :], left)
            highest = max(highest, values[at] + above)
    return highest


def _relaxed(
    values: NDArray[np.float64], takes: NDArray[np.float64], left: NDArray[np.float64]
) -> float:
    scale = np.maximum(takes.sum(axis=1), 1e-9)
    takes, left = takes / scale[:, None], left / scale
    multipliers, least = np.zeros(len(left)), float(values.sum())
    for step in range(DESCENT):
        gains = values - multipliers @ takes
        least = min(least, float(gains[gains > 0].sum() + multipliers @ left))
        slope = left - takes[:, gains > 0].sum(axis=1)
        pace = values.sum() / (1 + step) / (np.linalg.norm(slope) or 1.0)
        multipliers = np.maximum(0.0, multipliers - pace * slope)
    return least


def case(seed: int) -> dict[str, float]:
    """One model on one board: gaps to the bound and to the best set, and milliseconds."""
    rng = np.random.default_rng(seed)
    layout = random_model(rng)
    board = random_board(rng, layout)
    values = rng.uniform(0.2, 1.0, LAYERS)
    advice = Advice({}, dict(zip(layout.names, values.tolist(), strict=True)))
    limits = Limits(
        epochs=2,
        batch_size=BATCH,
        optimizer_slots=SLOTS,
        upload_time_s=1.0,
        full_upload_bytes=FULL_BYTES,
        dense_bits=None,
        deadline_s=DEADLINE_S,
        smallest_packet_bytes=40,
    )
    spent = []
    for _ in range(6):
        begin = time.thread_time()
        plan = fit(
            advice,
            layout=layout,
            capacity=board,
            limits=limits,
            load=Load(EXAMPLES, 0, ENVELOPE_BYTES),
        )
        spent.append((time.thread_time() - begin) * 1e3)
    worth = sum(values[layout.names.index(name)] for name in plan.trained)
    takes, room = resources(layout, board)
    bound = lagrangian_bound(values, takes, room)
    whole = pack(np.round(values * SCALE).astype(int).tolist(), takes, room, most_sets=ENOUGH)
    best = bound if whole is None else min(bound, whole.bound / SCALE)
    return {
        "seed": seed,
        "layers": len(plan.trained),
        "gap": float(1 - worth / bound),
        # Values were rounded in the search for the best set.
        "gap_to_best": max(0.0, float(1 - worth / best)),
        "first_ms": spent[0],
        "again_ms": median(spent[1:]),
    }


def run(say: Say, cases: int) -> Section:
    """Plan as many models, each on a board."""
    say("seed  layers  gap to bound  to the best set  first time     again")
    rows = []
    for seed in range(cases):
        row = case(seed)
        rows.append(row)
        say(
            f"{row['seed']:4.0f}  {row['layers']:6.0f}  {row['gap']:12.3%}  "
            f"{row['gap_to_best']:15.3%}  {row['first_ms']:7.1f} ms  {row['again_ms']:5.1f} ms"
        )
    gaps, spent = [row["gap"] for row in rows], [row["again_ms"] for row in rows]
    beyond = [row for row in rows if row["gap"] > MOST_GAP]
    best = [row for row in beyond if row["gap_to_best"] <= MOST_GAP]
    return Section(
        f"{LAYERS} layers within {MOST_GAP:.0%} of the bound, or of the best set where even that "
        f"is further off, in {MOST_MS:g} ms",
        f"gap to the bound median {median(gaps):.3%}, worst {max(gaps):.3%}, above "
        f"{MOST_GAP:.0%} in {len(beyond)} of {cases}, {len(best)} of them as good as the best set; "
        f"median {median(spent):.1f} ms, worst {max(spent):.1f} ms",
        len(best) == len(beyond) and max(spent) <= MOST_MS,
        {"cases": rows},
    )
