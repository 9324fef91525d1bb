"""Seeded draws for choosing a cohort: the same seed, round and purpose give the same everywhere.

All but :func:`generator` are whole-number arithmetic on a digest.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np


@dataclass(frozen=True)
class Draws:
    """The draws of one round of one run."""

    seed: int
    number: int

    def generator(self, what: str) -> np.random.Generator:
        """A numpy generator for one purpose."""
        return np.random.default_rng(self._key(what))

    def shuffled(self, device_ids: Iterable[str], what: str) -> list[str]:
        """In a random order; who of two comes first does not depend on who else is there."""
        return sorted(device_ids, key=lambda i: (self._key(f"{what} {i}"), i))

    def rounded(self, value: float, what: str) -> int:
        """One of the two whole numbers around ``value``, so that the mean is ``value``.

        With one purpose a larger value never gives a smaller number.

        >>> [Draws(0, n).rounded(0.5, "seats") for n in range(6)]
        [0, 0, 1, 1, 1, 0]
        """
        value = round(value, 9)  # 0.07 * 100 is a little above 7 in floating point
        below = math.floor(value)
        return below + (self._key(what) % 2**32 < int((value - below) * 2**32))

    def weighted(self, weights: Mapping[str, int], count: int, what: str) -> list[str]:
        """``count`` of the clients, one after another, each in proportion to its weight.

        Args:
            weights: by device id, above 0.
            count: as many as there are when that is fewer.
            what: the purpose.
        """
        left = dict(sorted(weights.items()))
        chosen: list[str] = []
        while left and len(chosen) < count:
            ends = list(accumulate(left.values()))
            at = self._key(f"{what} {len(chosen)}") % ends[-1]
            chosen.append(list(left)[bisect_right(ends, at)])
            del left[chosen[-1]]
        return chosen

    def _key(self, what: str) -> int:
        digest = hashlib.sha256(f"{self.seed} {self.number} {what}".encode()).digest()
        return int.from_bytes(digest[:16], "little")
