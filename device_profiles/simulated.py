"""The capacity of a simulated client: its board's profile with seeded jitter."""

from __future__ import annotations

import hashlib

import numpy as np

from device_profiles.board import Board, Rated
from fedfreeze.capacity import Capacity, Known


def simulated_capacity(board: Board, *, seed: int, device_id: str, round_number: int) -> Capacity:
    """What a simulated device can do in one round.

    Each value is drawn uniformly within its board's spread. The draw depends on nothing but the
    arguments, so that any process of any platform finds the same capacity in any order of asking.
    """

    def draw(quantity: str, rated: Rated[float]) -> Known:
        # Length prefixes keep ("a", "bc") and ("ab", "c") apart.
        key = "".join(f"{len(part)}:{part}" for part in (str(seed), device_id, quantity))
        digest = hashlib.sha256(f"{key}@{round_number}".encode()).digest()
        generator = np.random.default_rng(int.from_bytes(digest, "big"))
        swing = rated.spread * (2.0 * generator.random() - 1.0)
        return Known(rated.value * (1.0 + swing), "profile")

    return Capacity(
        flops_per_s=draw("flops", board.flops),
        memory_bytes=draw("memory", board.memory),
        uplink_bytes_per_s=draw("uplink", board.uplink),
        downlink_bytes_per_s=draw("downlink", board.downlink),
    )
