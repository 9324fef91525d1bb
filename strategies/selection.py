"""Who is asked to train in a round. Pure: the same seed and round choose the same clients."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np


def choose(
    rule: str, device_ids: Sequence[str], *, share: float, seed: int, number: int
) -> tuple[str, ...]:
    """The cohort of round ``number``, in device-id order.

    - ``all``: everybody.
    - ``uniform``: ``ceil(share * n)`` clients, every set of that size equally likely.
    - ``bernoulli``: each client's own coin with probability ``share``, thrown again while nobody
      is in. The coin depends on the client's id, not on who else is online.

    >>> choose("all", ["b", "a"], share=1.0, seed=0, number=1)
    ('a', 'b')
    """
    ids = sorted(device_ids)
    if rule == "all" or not ids:
        return tuple(ids)
    if rule == "uniform":
        # Rounded first: 0.07 * 100 is a little above 7 in floating point.
        size = max(1, math.ceil(round(share * len(ids), 9)))
        picked = _generator(seed, number, "uniform").choice(len(ids), size=size, replace=False)
        return tuple(ids[i] for i in sorted(picked))
    throw = 0
    while True:
        chosen = tuple(
            i for i in ids if _generator(seed, number, f"coin {throw} {i}").random() < share
        )
        if chosen:
            return chosen
        throw += 1


def _generator(seed: int, number: int, what: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed} {number} {what}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))
