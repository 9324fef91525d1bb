"""Golomb codes of subsets: where k chosen elements lie among N.

The gaps of a random subset are nearly geometric, for which Golomb's code with the divisor of
Gallager and van Voorhis (1975) is optimal among prefix codes. Many subsets are coded at once.
Their bits stand in three parts: low bits of the remainders by plane, last bits, quotients in unary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compression.bits import BitReader, Bits, Ints, bit_length, from_unary, to_planes
from compression.packet import refusal

_LN2_16 = 45426  # ln 2 in units of 2^-16


@dataclass(frozen=True)
class Subsets:
    """Subsets one behind another.

    Attributes:
        positions: of all chosen elements, each within its own universe, ascending in each subset.
        counts: chosen elements of each subset.
        universes: elements of each universe.
    """

    positions: Ints
    counts: Ints
    universes: Ints


@dataclass(frozen=True)
class Code:
    """Coded subsets, not yet packed."""

    quotients: Ints
    low: Ints
    low_widths: Ints
    last: Bits

    @property
    def bit_count(self) -> int:
        """Bits that :meth:`bits` returns."""
        unary = int(self.quotients.sum()) + len(self.quotients)
        return unary + int(self.low_widths.sum()) + len(self.last)

    def bits(self) -> list[Bits]:
        """The three parts."""
        return [to_planes(self.low, self.low_widths), self.last, from_unary(self.quotients)]


def divisors(counts: Ints, universes: Ints) -> Ints:
    """Golomb's divisor of each subset, by integers alone so that both ends agree.

    It is ``ln 2 (N/k - 1/2)`` rounded, within one of the optimum ``ceil(-ln(2-p)/ln(1-p))`` for
    ``p = k/N``. Empty subsets get 1.

    >>> divisors(np.array([500, 10, 1, 0]), np.array([1000, 1000, 1000, 1000])).tolist()
    [1, 69, 693, 1]
    """
    chosen = np.maximum(counts, 1)
    scaled = _LN2_16 * (2 * universes - chosen) // (2 * chosen)
    return np.where(counts > 0, np.maximum(1, (scaled + 2**15) >> 16), 1)


def code(subsets: Subsets) -> Code:
    """Code the gaps between neighbours of each subset."""
    divisor = np.repeat(divisors(subsets.counts, subsets.universes), subsets.counts)
    gaps = np.diff(subsets.positions, prepend=-1) - 1
    firsts = _firsts(subsets.counts)
    gaps[firsts] = subsets.positions[firsts]
    quotients, remainders = np.divmod(gaps, divisor)
    # Truncated binary: the first `cutoff` remainders do without the last bit.
    width = bit_length(divisor - 1)
    cutoff = (1 << width) - divisor
    has_last = (remainders >= cutoff) & (width > 0)
    shifted = remainders + cutoff
    return Code(
        quotients=quotients,
        low=np.where(has_last, shifted >> 1, remainders),
        low_widths=np.maximum(width - 1, 0),
        last=(shifted[has_last] & 1).astype(np.uint8),
    )


def read(reader: BitReader, counts: Ints, universes: Ints) -> Ints:
    """The positions of coded subsets; they fill all that is left in ``reader``.

    Raises:
        PacketError: too few or too many bits, or a position outside its universe.
    """
    if int(counts.sum()) > reader.left:
        raise refusal(f"at least {int(counts.sum())} more bits", str(reader.left))
    divisor = np.repeat(divisors(counts, universes), counts)
    width = bit_length(divisor - 1)
    cutoff = (1 << width) - divisor
    low = reader.planes(np.maximum(width - 1, 0))
    has_last = (low >= cutoff) & (width > 0)
    remainders = low.copy()
    last = reader.take(int(has_last.sum()))
    remainders[has_last] = 2 * low[has_last] + last - cutoff[has_last]
    quotients = reader.unary(len(divisor))
    # Checked before the product, which could otherwise overflow.
    if (quotients > np.repeat(universes, counts) // divisor).any():
        raise refusal("positions inside their layer", "one beyond its end")
    ends = np.cumsum(quotients * divisor + remainders + 1)
    firsts = _firsts(counts)
    filled = counts[counts > 0]
    positions: Ints = ends - 1 - np.repeat(np.concatenate([[0], ends])[firsts], filled)
    lasts = firsts + filled - 1
    if (positions[lasts] >= universes[counts > 0]).any():
        raise refusal("positions inside their layer", "one beyond its end")
    return positions


def _firsts(counts: Ints) -> Ints:
    """Where each subset that is not empty begins."""
    filled = counts[counts > 0]
    firsts: Ints = np.cumsum(filled) - filled
    return firsts
