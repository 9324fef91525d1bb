"""The plan against every set of layers, sized up one by one with the formulas of costs."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from device_profiles.board import load_board
from device_profiles.cost import training_flops, training_memory_bytes
from fedfreeze.capacity import Capacity, Known
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from fedfreeze.plan import Reason
from strategies.bounds import splits_of
from strategies.freeze.policy import Advice, StageAdvice
from strategies.planner import Limits, Load, fit

BOARD = load_board("rpi-4b-4gb")
RADIO_W, COMPUTE_W = BOARD.power.radio.value, BOARD.power.compute.value


def random_case(seed, layers=None):
    """A board that can do some of it: every limit is drawn around what the whole model takes."""
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
        energy_j_per_round=some(4.0 + epoch_s * COMPUTE_W * rng.choice(around)),
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


def _stages(rng, names):
    cuts = sorted({0, 4, *rng.integers(0, 5, 2).tolist()})
    return tuple(
        StageAdvice((end - begin) / 4, tuple(n for n in names if rng.random() < 0.6) or names[-1:])
        for begin, end in pairwise(cuts)
    )


@dataclass(frozen=True)
class Found:
    """What the brute force compares plans by."""

    trained: tuple[str, ...]
    epochs: int
    packet_bytes: int
    splits: int


def brute_force(advice, *, layout, capacity, limits, load):
    """The best plan, by trying every set of layers; None where none fits."""
    speed, memory, up, down = (
        getattr(capacity, name).value
        for name in ("flops_per_s", "memory_bytes", "uplink_bytes_per_s", "downlink_bytes_per_s")
    )
    most = min(int(up * limits.upload_time_s - load.envelope_bytes), limits.full_upload_bytes)
    if limits.upload_bytes_per_round is not None:
        most = min(most, limits.upload_bytes_per_round - load.envelope_bytes)
    shares = {
        name: sum(Fraction(s.share) for s in advice.stages if name in s.layers)
        if advice.stages
        else Fraction(1)
        for name in layout.names
    }
    free = [name for name in layout.names if name not in advice.frozen and shares[name]]

    def flops_of(trained):
        stages, lost = [], 0.0
        for stage in advice.stages or (StageAdvice(1.0, layout.names),):
            there = [name for name in trained if name in stage.layers]
            if there:
                stages.append([stage.share + lost, there])
                lost = 0.0
            else:
                lost += stage.share
        stages[-1][0] += lost
        return sum(share * training_flops(layout, there, load.examples) for share, there in stages)

    def least_packet(trained):
        parameters = sum(layout[name].parameter_count for name in trained)
        buffers = sum(4 * t.size for n in trained for t in layout[n].tensors if t.kind == "buffer")
        bare = limits.smallest_packet_bytes + buffers
        if limits.dense_bits is not None:
            return bare + parameters * limits.dense_bits // 8
        thin = Fraction(limits.full_upload_bytes * parameters, layout.parameter_count)
        return bare if len(trained) == 1 else max(bare, -(-thin.numerator // thin.denominator))

    def seconds(flops, packet):
        return load.download_bytes / down + flops / speed + (packet + load.envelope_bytes) / up

    def holds(flops, packet):
        radio_s = load.download_bytes / down + (packet + load.envelope_bytes) / up
        joules = RADIO_W * radio_s + COMPUTE_W * flops / speed
        return (
            seconds(flops, packet) <= limits.deadline_s
            and flops <= (limits.flops_per_round or np.inf)
            and joules <= (limits.energy_j_per_round or np.inf)
        )

    def splits(trained):
        for parts in limits.splits:
            size = -(-limits.batch_size // parts)
            if training_memory_bytes(layout, trained, size, limits.optimizer_slots) <= memory:
                return parts
        return None

    def worth(trained):
        must = sum(name in advice.must_train for name in trained)
        return must, sum(Fraction(advice.values[name]) * shares[name] for name in trained)

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

    def epochs(trained):
        flops, packet = flops_of(trained), least_packet(trained)
        return max(n for n in range(1, limits.epochs + 1) if holds(n * flops, packet))

    able = _best(able, epochs)

    def packet(trained):
        flops = epochs(trained) * flops_of(trained)
        sizes = range(most, least_packet(trained) - 1, -1)
        return next(size for size in sizes if holds(flops, size))

    able = _best(able, packet)
    able = _best(able, lambda trained: -splits(trained))
    able = _best(able, len)
    able = _best(
        able,
        lambda trained: -round(seconds(epochs(trained) * flops_of(trained), packet(trained)) * 1e6),
    )
    best = max(able, key=lambda trained: [layout.names.index(n) for n in reversed(trained)])
    return Found(best, epochs(best), packet(best), splits(best))


def _best(sets, key):
    most = max(map(key, sets))
    return [one for one in sets if key(one) == most]


def found(case):
    try:
        plan = fit(case["advice"], **{k: v for k, v in case.items() if k != "advice"})
    except PlanError:
        return None
    trained = case["layout"].ordered(plan.trained)
    return Found(trained, plan.epochs, plan.upload_budget_bytes, plan.micro_batches)


@pytest.mark.parametrize("block", range(10))
def test_a_plan_is_the_best_of_all_sets_of_layers(block):
    outcomes = []
    for seed in range(100 * block, 100 * block + 100):
        case = random_case(seed)
        expected = brute_force(**case)
        assert found(case) == expected, f"seed {seed}"
        outcomes.append(expected)
    # The cases are neither all impossible nor all trivial.
    assert 1 < outcomes.count(None) < 45
    assert sum(o is not None and len(o.trained) > 2 for o in outcomes) > 15


@pytest.mark.parametrize("seed", range(10_000, 10_010))
def test_a_plan_is_the_best_of_all_sets_of_twelve_layers(seed):
    case = random_case(seed, layers=12)
    assert found(case) == brute_force(**case)
