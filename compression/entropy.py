"""What the choice of some elements of a universe takes at least, if all choices are alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compression.bits import Ints

ENERGY_PER_BIT = 0.1155
"""What one more bit takes off the squared error, in squares of the step (compression.rate)."""


def entropy(members: Ints, universes: Ints) -> NDArray[np.float64]:
    """Bits of which ``members`` of ``universes`` are chosen, nearly log2 of the binomial.

    >>> entropy(np.array([0, 4, 8]), np.array([8, 8, 8])).tolist()
    [0.0, 8.0, 0.0]
    """
    size = universes.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = members / size
        bits = -size * (p * np.log2(p) + (1 - p) * np.log2(1 - p))
    return np.where((members > 0) & (members < universes), bits, 0.0)
