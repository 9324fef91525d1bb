"""The best plan by trying every set of layers, sized up one by one with the formulas of costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from device_profiles.cost import training_flops, training_memory_bytes
from fedfreeze.capacity import Capacity
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layout
from fedfreeze.plan import Plan
from strategies.bounds import Limits, Load
from strategies.freeze.policy import Advice, StageAdvice

Trained = tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What plans are compared by."""

    trained: Trained
    epochs: int
    packet_bytes: int
    splits: int


def planned(fit: Callable[..., Plan], case: Mapping[str, Any]) -> Found | None:
    """What a planner finds for its arguments; None where it says that nothing fits."""
    try:
        plan = fit(**case)
    except PlanError:
        return None
    trained = case["layout"].ordered(plan.trained)
    return Found(trained, plan.epochs, plan.upload_budget_bytes, plan.micro_batches)


def brute_force(
    advice: Advice, *, layout: Layout, capacity: Capacity, limits: Limits, load: Load
) -> Found | None:
    """The best plan; None where none fits.

    It is written apart from the planner: only the costs of a set are shared, and its rules are
    those of :mod:`strategies.planner` and :mod:`strategies.means` in words.
    """
    speed, memory = capacity.flops_per_s.value, capacity.memory_bytes.value
    up, down = capacity.uplink_bytes_per_s.value, capacity.downlink_bytes_per_s.value
    assert load.board is not None
    radio_w, compute_w = load.board.power.radio.value, load.board.power.compute.value
    most = min(int(up * limits.upload_time_s - load.envelope_bytes), limits.full_upload_bytes)
    if limits.upload_bytes_per_round is not None:
        most = min(most, limits.upload_bytes_per_round - load.envelope_bytes)
    shares = {
        name: Fraction(sum(Fraction(s.share) for s in advice.stages if name in s.layers))
        if advice.stages
        else Fraction(1)
        for name in layout.names
    }
    free = [name for name in layout.names if name not in advice.frozen and shares[name]]

    def flops_of(trained: Trained) -> float:
        stages: list[tuple[float, list[str]]] = []
        lost = 0.0
        for stage in advice.stages or (StageAdvice(1.0, layout.names),):
            there = [name for name in trained if name in stage.layers]
            if there:
                stages.append((stage.share + lost, there))
                lost = 0.0
            else:
                lost += stage.share
        stages[-1] = (stages[-1][0] + lost, stages[-1][1])
        return sum(share * training_flops(layout, there, load.examples) for share, there in stages)

    def least_packet(trained: Trained) -> int:
        parameters = sum(layout[name].parameter_count for name in trained)
        buffers = sum(4 * t.size for n in trained for t in layout[n].tensors if t.kind == "buffer")
        bare = limits.smallest_packet_bytes + buffers
        if limits.dense_bits is not None:
            return bare + parameters * limits.dense_bits // 8
        thin = Fraction(limits.full_upload_bytes * parameters, layout.parameter_count)
        return bare if len(trained) == 1 else max(bare, -(-thin.numerator // thin.denominator))

    def seconds(flops: float, packet: int) -> float:
        return load.download_bytes / down + flops / speed + (packet + load.envelope_bytes) / up

    def holds(flops: float, packet: int) -> bool:
        radio_s = load.download_bytes / down + (packet + load.envelope_bytes) / up
        joules = radio_w * radio_s + compute_w * flops / speed
        return bool(
            seconds(flops, packet) <= limits.deadline_s
            and flops <= (limits.flops_per_round or np.inf)
            and joules <= (limits.energy_j_per_round or np.inf)
        )

    def splits(trained: Trained) -> int | None:
        for parts in limits.splits:
            size = -(-limits.batch_size // parts)
            if training_memory_bytes(layout, trained, size, limits.optimizer_slots) <= memory:
                return parts
        return None

    def worth(trained: Trained) -> tuple[int, Fraction]:
        must = sum(name in advice.must_train for name in trained)
        return must, sum((Fraction(advice.values[n]) * shares[n] for n in trained), Fraction(0))

    able = [
        trained
        for size in range(1, len(free) + 1)
        for trained in combinations(free, size)
        if least_packet(trained) <= most
        and holds(flops_of(trained), least_packet(trained))
        and splits(trained) is not None
    ]
    if not able:
        return None
    able = _best(able, worth)

    def epochs(trained: Trained) -> int:
        flops, packet = flops_of(trained), least_packet(trained)
        return max(n for n in range(1, limits.epochs + 1) if holds(n * flops, packet))

    able = _best(able, epochs)

    def packet(trained: Trained) -> int:
        flops = epochs(trained) * flops_of(trained)
        sizes = range(most, least_packet(trained) - 1, -1)
        return next(size for size in sizes if holds(flops, size))

    able = _best(able, packet)
    able = _best(able, lambda trained: -(splits(trained) or 0))
    able = _best(able, len)
    able = _best(
        able,
        lambda trained: -round(seconds(epochs(trained) * flops_of(trained), packet(trained)) * 1e6),
    )
    best = max(able, key=lambda trained: [layout.names.index(n) for n in reversed(trained)])
    return Found(best, epochs(best), packet(best), splits(best) or 0)


def _best(sets: Sequence[Trained], key: Callable[[Trained], Any]) -> list[Trained]:
    most = max(map(key, sets))
    return [one for one in sets if key(one) == most]
