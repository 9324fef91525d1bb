"""Coding units: tensors, or runs of neighbours that are coded as one vector.

A row of the table costs some bytes. Where neighbouring tensors have about the same density, as
the biases of a network do, one row for all of them is cheaper than one each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression.segments import Ints, Segments
from fedfreeze.layout import TensorSpec

Bools = NDArray[np.bool_]

# What a row of the table weighs: a count alone, and a count with all that follows it.
_EMPTY_BITS, _FULL_BITS = 8.0, 48.0


@dataclass(frozen=True)
class Units:
    """The coding units of some segments.

    Attributes:
        joined: for each tensor whether it goes on with the unit of the one before it.
        members: number of the unit of each tensor.
        sizes: elements of each unit.
        starts: where each unit begins in the flat vector.
        tensors: the one tensor of each unit; None for a unit of several.
    """

    joined: Bools
    members: Ints
    sizes: Ints
    starts: Ints
    tensors: tuple[TensorSpec | None, ...]

    @classmethod
    def of(cls, segments: Segments, joined: Bools) -> Units:
        """The units that ``joined`` makes of the tensors; its first value is False."""
        firsts = np.flatnonzero(~joined)
        members = np.cumsum(~joined) - 1
        alone = np.diff(firsts, append=len(joined)) == 1
        return cls(
            joined=joined,
            members=members,
            sizes=np.add.reduceat(segments.sizes, firsts) if len(firsts) else segments.sizes,
            starts=segments.starts[firsts],
            tensors=tuple(
                segments.parameters[first] if one else None
                for first, one in zip(firsts.tolist(), alone.tolist(), strict=True)
            ),
        )

    def __len__(self) -> int:
        return len(self.sizes)


def join(counts: Sequence[int], sizes: Sequence[int], alone: Sequence[bool]) -> Bools:
    """Which tensors to join to the one before, by the bits of their positions and table rows.

    Args:
        counts: kept values of each tensor.
        sizes: its elements.
        alone: whether it must be a unit of its own.

    >>> join([2, 1, 900, 1], [64, 64, 1000, 64], [False, False, False, True]).tolist()
    [False, True, False, False]
    """
    joined = np.zeros(len(counts), np.bool_)
    kept = size = 0
    bits, open_ = 0.0, False
    for place, (count, length, single) in enumerate(zip(counts, sizes, alone, strict=True)):
        own = _bits(count, length)
        together = _bits(kept + count, size + length)
        if open_ and not single and together < bits + own:
            joined[place] = True
            kept, size, bits = kept + count, size + length, together
        else:
            kept, size, bits, open_ = count, length, own, not single
    return joined


def _bits(kept: int, size: int) -> float:
    """The entropy of ``kept`` positions among ``size``, and the row of the table."""
    if not kept:
        return _EMPTY_BITS
    if kept == size:
        return _FULL_BITS
    p = kept / size
    return _FULL_BITS - size * (p * math.log2(p) + (1 - p) * math.log2(1 - p))
