"""A draw that depends on nothing but what it is for: the same on every process and platform."""

from __future__ import annotations

import hashlib
from typing import Final

DRAWS: Final = 2**64
"""Draws are whole numbers from 0 up to here; a probability times this power of two is exact."""


def draw(*purpose: str | int) -> int:
    """A whole number below :data:`DRAWS`, one for each purpose.

    Args:
        purpose: such as the seed of a run, a device id and the number of a round.

    >>> draw(0, "cam-07", 1) < DRAWS // 2
    True
    """
    # Length prefixes keep ("a", "bc") and ("ab", "c") apart.
    key = "".join(f"{len(part)}:{part}" for part in map(str, purpose))
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
