"""Golomb codes of subsets: where k chosen elements lie among N.

The gaps of a random subset are nearly geometric, for which Golomb's code with the divisor of
Gallager and van Voorhis (1975) is optimal among prefix codes. Many subsets are coded at once.
Their bits stand in three parts: low bits of the remainders by plane, last bits, quotients in unary.
Where more than half of a universe is chosen, the others are coded: they are fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compression.bits import Bits, Bools, Ints, Whole, bit_length, from_unary, to_planes

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
    """Coded subsets, not yet packed: ``counts`` elements of each."""

    counts: Ints
    quotients: Whole
    low: Whole
    low_widths: Whole
    has_last: Bools
    last: Bits

    @property
    def bit_count(self) -> int:
        """Bits that :meth:`bits` returns."""
        unary = int(self.quotients.sum()) + len(self.quotients)
        return unary + int(self.low_widths.sum()) + len(self.last)

    @property
    def subset_bits(self) -> Ints:
        """Bits of each subset."""
        elements = self.quotients + 1 + self.low_widths + self.has_last
        ends = np.concatenate([[0], np.cumsum(elements)])
        subset_ends = np.concatenate([[0], np.cumsum(self.counts)])
        bits: Ints = np.diff(ends[subset_ends])
        return bits

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
    fewer = _fewer(subsets)
    counts = fewer.counts
    # Half the width is twice the speed, and few universes need more.
    wide = int(fewer.universes.max(initial=0)) >= 2**31
    positions: Whole = fewer.positions if wide else fewer.positions.astype(np.int32)
    gaps = np.empty_like(positions)
    np.subtract(positions[1:], positions[:-1], out=gaps[1:])
    gaps -= 1
    firsts = _firsts(counts)
    gaps[firsts] = positions[firsts]
    divisor = divisors(counts, fewer.universes)
    # Truncated binary: the first `cutoff` remainders do without the last bit.
    width = bit_length(divisor - 1)
    cutoff = np.where(width > 0, (1 << width) - divisor, 1)  # 1 is above the only remainder
    by_subset = np.repeat(np.arange(len(counts)), counts)
    divided_by: Whole = divisor.astype(gaps.dtype)[by_subset]
    quotients, remainders = _divided(gaps, divided_by)
    cutoffs: Whole = cutoff.astype(gaps.dtype)[by_subset]
    shifted = remainders + cutoffs
    has_last = remainders >= cutoffs
    return Code(
        counts=counts,
        quotients=quotients,
        low=np.where(has_last, shifted >> 1, remainders),
        low_widths=np.maximum(width - 1, 0).astype(np.uint8)[by_subset],
        has_last=has_last,
        last=(shifted[has_last] & 1).astype(np.uint8),
    )


def _divided(values: Whole, by: Whole) -> tuple[Whole, Whole]:
    """Quotients and remainders of numbers below 2^52.

    By floating point, which is several times as fast as integer division and as exact: a quotient
    just below a whole number is off it by 1/by at least, which float64 does not round away.
    """
    quotients = (values / by).astype(values.dtype)
    return quotients, values - quotients * by


def _fewer(subsets: Subsets) -> Subsets:
    return _flip(subsets, 2 * subsets.counts > subsets.universes)


def _flip(subsets: Subsets, flipped: Bools) -> Subsets:
    """The complements of the subsets that are marked, among the others as they are."""
    if not flipped.any():
        return subsets
    universes = subsets.universes[flipped]
    counts = np.where(flipped, subsets.universes - subsets.counts, subsets.counts)
    starts = np.repeat(np.cumsum(universes) - universes, subsets.counts[flipped])
    marked = np.repeat(flipped, subsets.counts)
    absent = np.ones(int(universes.sum()), np.bool_)
    absent[subsets.positions[marked] + starts] = False
    others = np.flatnonzero(absent)
    others -= np.repeat(np.cumsum(universes) - universes, counts[flipped])
    positions = np.empty(int(counts.sum()), np.int64)
    marked_after = np.repeat(flipped, counts)
    positions[marked_after] = others
    positions[~marked_after] = subsets.positions[~marked]
    return Subsets(positions, counts, subsets.universes)


def joined(parts: Sequence[Subsets]) -> Subsets:
    """Subsets one behind another."""
    empty = np.zeros(0, np.int64)
    return Subsets(
        np.concatenate([empty, *(part.positions for part in parts)]),
        np.concatenate([empty, *(part.counts for part in parts)]),
        np.concatenate([empty, *(part.universes for part in parts)]),
    )


def _firsts(counts: Ints) -> Ints:
    """Where each subset that is not empty begins."""
    filled = counts[counts > 0]
    firsts: Ints = np.cumsum(filled) - filled
    return firsts
