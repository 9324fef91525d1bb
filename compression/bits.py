"""Bit arrays: one ``uint8`` a bit, lowest bit of each byte first once packed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# Whole numbers, as narrow as who made them could have them.
Whole = NDArray[np.integer]


def bit_length(values: Ints) -> Ints:
    """Bits that each value needs; 0 needs none. Exact below 2^53.

    >>> bit_length(np.array([0, 1, 4, 255, 256])).tolist()
    [0, 1, 3, 8, 9]
    """
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)


def to_planes(values: Whole, widths: Whole) -> Bits:
    """Bit 0 of every value that is at least 1 bit wide, then bit 1 of those of 2 bits, and so on.

    Args:
        values: shape ``(k,)``, each below ``2**width``.
        widths: shape ``(k,)``, bits of each value.
    """
    planes = [np.zeros(0, np.uint8)]
    for plane in range(int(widths.max(initial=0))):
        if plane % 8 == 0:  # bytes, of which many more are handled at once
            octets = (values >> plane).astype(np.uint8)
        bits = octets >> np.uint8(plane % 8) & np.uint8(1)
        wide = widths > plane
        planes.append(bits if wide.all() else bits[wide])
    return np.concatenate(planes)


def from_unary(values: Whole) -> Bits:
    """Each value as so many zeros and a one.

    >>> from_unary(np.array([0, 2])).tolist()
    [1, 0, 0, 1]
    """
    ends = np.cumsum(values + 1, dtype=np.int64)
    bits = np.zeros(int(ends[-1]) if ends.size else 0, np.uint8)
    bits[ends - 1] = 1
    return bits
