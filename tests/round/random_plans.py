"""Strategies, fleets and advice drawn at random, for what must hold whatever the plan.

All share the wide task and three rounds; they differ in boards, mode, budget, downlink, residual,
and in which layers train in which stage.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from device_profiles.board import boards, load_board
from fedfreeze.plan import Reason
from strategies.freeze.policy import Advice, StageAdvice
from strategies.orders import ORDER_BYTES
from tests.wide_task import task

NODES = 3
ROUNDS = 3
LAYERS = task.layout().names
MODEL_BYTES = sum(tensor.nbytes for tensor in task.layout().tensors.values())

# What a first reply is taken to weigh leaves nothing of less.
LEAST_CARRIED_BYTES = 4_200


@dataclass(frozen=True)
class Drawn:
    """One strategy on one fleet.

    Attributes:
        overrides: of the preset.
        boards: by number of the node.
    """

    overrides: tuple[str, ...]
    boards: tuple[str, ...]


def drawn(rng, mode, downlink, fleet_file):
    """A strategy with this mode and way down; its fleet is written to ``fleet_file``."""
    names = tuple(rng.choice(boards(), NODES).tolist())
    fleet_file.write_text("".join(f'[[board]]\nprofile = "{name}"\n' for name in names))
    # The uplink of one of them carries as much as an envelope with a packet, or somewhat more.
    uplink = load_board(str(rng.choice(names))).uplink.value
    least = 3 if mode == "dense" else 1.2
    upload_time_s = float(LEAST_CARRIED_BYTES * rng.uniform(least, 6) / uplink)
    keys = {
        "task": "tests.wide_task",
        "fleet": str(fleet_file),
        "rounds": ROUNDS,
        "seed": int(rng.integers(1_000)),
        "clients.quorum": 0.0,
        "clients.round-deadline": f"{_deadline_s(rng, names, upload_time_s):.9f} s",
        "local.batch-size": int(rng.integers(4, 23)),
        "local.epochs": int(rng.integers(1, 3)),
        "compression.mode": mode,
        "compression.upload-time": f"{upload_time_s:.9f} s",
        "compression.compression-ratio": float(np.exp(rng.uniform(0, np.log(20)))),
        "compression.downlink": downlink,
        "compression.error-feedback": bool(rng.random() < 0.8),
        "compression.few-examples": str(
            rng.choice(["plain", "damped-weight"] + ["finer-step"] * (mode != "dense"))
        ),
        "freeze.warm-up-rounds": 0,
    }
    if downlink == "sparse":
        keys["compression.downlink-ratio"] = float(rng.uniform(2, 12))
    if mode == "dense":
        keys["compression.bits"] = int(rng.choice([8, 16, 32]))
    elif rng.random() < 0.3:
        keys["compression.density"] = float(rng.uniform(0.001, 0.5))
    if mode == "sparse":
        keys |= _sparse(rng)
    if keys["compression.error-feedback"]:
        keys |= _residual(rng)
    overrides = tuple(f"{key}={json.dumps(value)}" for key, value in keys.items())
    return Drawn(overrides, names)


def _deadline_s(rng, names, upload_time_s):
    """Mostly ample; else the transfers of the board with the thinnest downlink may just miss it.

    A plan may shrink its packet for the deadline's sake, but not the envelope's part of it.
    """
    if rng.random() < 0.6:
        return 600.0
    downlink = min(load_board(name).downlink.value for name in names)
    return rng.uniform(0.8, 1.2) * (ORDER_BYTES + MODEL_BYTES) / downlink + upload_time_s / 3


def _sparse(rng):
    keys = {
        "compression.effort": str(rng.choice(["fast", "thorough"])),
        "compression.boost-by": str(rng.choice(["globs", "importance"])),
    }
    if rng.random() < 0.3:
        keys["compression.value-bits"] = int(rng.integers(2, 9))
    if rng.random() < 0.5:
        keys["compression.floors.head"] = float(rng.uniform(0, 0.5))
        keys["compression.floors.stem"] = float(rng.uniform(0, 0.1))
    if rng.random() < 0.5:
        keys["compression.boost.head"] = float(rng.choice([4, 16]))
    return keys


def _residual(rng):
    fates = ["keep", "decay", "drop"]
    return {
        "residual.frozen": str(rng.choice(fates)),
        "residual.missed": str(rng.choice(fates)),
        "residual.precision": str(rng.choice(["float32", "float16"])),
        "residual.summary": bool(rng.random() < 0.5),
    }


def advice(rng):
    """A policy's ``advise`` that freezes some layers, and trains the others in up to two stages."""

    def advise(view, client):
        frozen = {name for name in LAYERS if rng.random() < 0.3} - {str(rng.choice(LAYERS))}
        trained = tuple(name for name in LAYERS if name not in frozen)
        stages = ()
        if rng.random() < 0.3:
            first = trained[int(rng.integers(len(trained))) :]
            stages = (StageAdvice(0.5, first), StageAdvice(0.5, trained))
        return Advice(
            frozen={name: Reason("fixed", "drawn") for name in frozen},
            values={name: float(rng.random()) for name in LAYERS},
            must_train=(str(rng.choice(LAYERS)),),
            stages=stages,
        )

    return advise
