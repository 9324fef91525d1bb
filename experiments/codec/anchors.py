"""What others send at the same bytes: three codecs of the field, sizes exact to the bit.

Each keeps the k largest of the whole update, with the largest k that fits.

- ``stc``: sparse ternary compression (Sattler et al., 2019): signs, one mean magnitude, and
  positions in Golomb's code with the parameter of the paper's density. Where fewer values than fit
  leave a smaller error, it is given those.
- ``int32+fp32``: 64 bits a value, as top-k is written in most frameworks.
- ``leb128+8bit``: gaps in LEB128, values as symmetric 8-bit integers.

None is charged a header, a checksum or the names of its tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_SCALE_BITS = 32


def largest_first(flat: Floats) -> Ints:
    """Indices by falling magnitude; ties keep the lower index."""
    return np.argsort(-np.abs(flat), kind="stable")


def golomb_width(p: float) -> int:
    """Bits of a remainder for density ``p``: ``1 + floor(log2(log(φ - 1) / log(1 - p)))``.

    >>> golomb_width(0.01), golomb_width(1 / 400)
    (6, 8)
    """
    if p >= 1:
        return 0
    golden = (math.sqrt(5) + 1) / 2
    return max(0, 1 + math.floor(math.log2(math.log(golden - 1) / math.log1p(-p))))


def stc_bits(positions: Ints, size: int) -> int:
    """Bits of sparse ternary compression for ascending positions in a vector of ``size``."""
    gaps = np.diff(positions, prepend=-1) - 1
    width = golomb_width(len(positions) / size)
    # Quotient in unary with its end, remainder, sign.
    return int((gaps >> width).sum()) + len(positions) * (1 + width + 1) + _SCALE_BITS


def leb128_bits(positions: Ints) -> int:
    """Bits of gaps in LEB128 and an 8-bit value for each of the ascending positions."""
    gaps = np.diff(positions, prepend=-1) - 1
    length = 1 + (gaps > 0x7F) + (gaps > 0x3FFF) + (gaps > 0x1FFFFF) + (gaps > 0xFFFFFFF)
    return int(8 * length.sum()) + 8 * len(positions) + _SCALE_BITS


class Anchors:
    """The three codecs on one update.

    Args:
        flat: all parameters of the update.
    """

    def __init__(self, flat: Floats) -> None:
        self._flat = flat
        self._order = largest_first(flat)
        self._energy = float((flat.astype(np.float64) ** 2).sum())
        sums = np.cumsum(np.abs(flat[self._order]).astype(np.float64))
        # What k values of one magnitude, their mean, take off the error, for the best k so far.
        self._ternary = np.maximum.accumulate(sums**2 / np.arange(1, len(flat) + 1))

    def stc(self, budget_bytes: float) -> float:
        """The error share of sparse ternary compression within the budget."""
        k = self._largest_k(lambda where: stc_bits(where, len(self._flat)), budget_bytes)
        return 1 - float(self._ternary[k - 1]) / self._energy if k else 1.0

    def stc_bytes(self, error: float) -> float | None:
        """The bytes that sparse ternary compression needs for an error share; None: never there."""
        k = int(np.searchsorted(self._ternary, (1 - error) * self._energy)) + 1
        if k > len(self._flat):
            return None
        return stc_bits(np.sort(self._order[:k]), len(self._flat)) / 8

    def int32_fp32(self, budget_bytes: float) -> float:
        """The error share of index and float32 for each value."""
        k = min(int(budget_bytes // 8), len(self._flat))
        return self._left(k, self._flat[self._order[:k]])

    def leb128_8bit(self, budget_bytes: float) -> float:
        """The error share of LEB128 gaps with symmetric 8-bit values and one scale."""
        k = self._largest_k(leb128_bits, budget_bytes)
        kept = self._flat[self._order[:k]].astype(np.float64)
        scale = max(float(np.abs(kept).max(initial=0.0)) / 127, 1e-300)
        return self._left(k, np.rint(kept / scale) * scale)

    def _left(self, k: int, restored: NDArray[np.generic]) -> float:
        kept = self._flat[self._order[:k]].astype(np.float64)
        lost = float(((kept - restored.astype(np.float64)) ** 2).sum())
        return (self._energy - float((kept**2).sum()) + lost) / self._energy

    def _largest_k(self, bits_of: Callable[[Ints], int], budget_bytes: float) -> int:
        low, high = 0, min(len(self._flat), int(8 * budget_bytes))
        while low < high:
            middle = (low + high + 1) // 2
            fits = bits_of(np.sort(self._order[:middle])) <= 8 * budget_bytes
            low, high = (middle, high) if fits else (low, middle - 1)
        return low
