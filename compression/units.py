"""Coding units: tensors, or runs of neighbours that are coded as one vector.

A row of the table costs some bytes. Where neighbouring tensors have about the same density and
about the same magnitudes, as the biases of a network do, one row for all of them is cheaper than
one each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compression.entropy import ENERGY_PER_BIT
from compression.nested import LEVELS
from compression.segments import Floats, Ints, Segments
from fedfreeze.layout import TensorSpec

Bools = NDArray[np.bool_]

# Of a row: the flags, a dead zone below two steps, the offset.
_FIXED_BYTES = 3
_BREADTH = 3


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


@dataclass(frozen=True)
class Content:
    """What a unit holds, as far as its cost depends on it.

    Attributes:
        size: elements that its positions are among; its kept values where both ends know them.
        cells: kept values in cell 0, 1, ... up to the last that has some.
        tails: kept values in cell ``LEVELS`` or above.
        tail_width: bits of a tail.
        near: sum of how far the values of cell 0 lie from 0, in steps.
    """

    size: int
    cells: tuple[int, ...]
    tails: int = 0
    tail_width: int = 0
    near: float = 0.0

    def __add__(self, other: Content) -> Content:
        return Content(
            self.size + other.size,
            tuple([a + b for a, b in zip_longest(self.cells, other.cells, fillvalue=0)]),
            self.tails + other.tails,
            max(self.tail_width, other.tail_width),
            self.near + other.near,
        )

    @cached_property
    def cost(self) -> float:
        """Bits of positions, planes and tails by their entropies, and of the row of the table.

        Signs are left out, for they cost the same in any unit. The entropies of positions and of
        nested planes add up to that of one choice for each element: not kept, or in which cell.

        The n values of cell 0 are restored at one place, at best their mean m, which takes n m^2
        off their squares. What that is worth in bits is taken off the cost, for tensors of one
        unit share the place.
        """
        kept = left = sum(self.cells) + self.tails
        if not kept:
            return 8.0
        bits = _n_log_n(self.size) - _n_log_n(self.size - kept) - _n_log_n(self.tails)
        # Behind the last plane stands a 0, or the width of tails.
        row_bytes = _FIXED_BYTES + 1
        for count in self.cells:
            bits -= _n_log_n(count)
            row_bytes += _varint_bytes(left)
            left -= count
        if self.tails:
            planes = 1 + LEVELS - len(self.cells)
            row_bytes += planes * _varint_bytes(self.tails)
        worth = self.near**2 / (self.cells[0] * ENERGY_PER_BIT) if self.near else 0.0
        return bits + self.tails * self.tail_width + 8 * row_bytes - worth


def contents(
    sizes: Sequence[int], counts: Ints, cells: Ints, distances: Floats, examined: Bools
) -> list[Content | None]:
    """What each tensor would hold as a unit of its own; None for those not examined.

    Args:
        sizes: elements of each tensor.
        counts: kept values of each tensor.
        cells: of the kept values of examined tensors, tensor by tensor.
        distances: how far from 0 each of them lies, in steps.
        examined: which tensors.
    """
    numbers = np.flatnonzero(examined)
    tensor = np.repeat(np.arange(len(numbers)), counts[numbers])
    width = LEVELS + 1
    keys = tensor * width + np.minimum(cells, LEVELS)
    table = np.bincount(keys, minlength=width * len(numbers)).reshape(-1, width)
    lengths = LEVELS - np.argmax(table[:, LEVELS - 1 :: -1] > 0, axis=1)
    lengths[~table[:, :LEVELS].any(axis=1)] = 0
    largest = np.zeros(len(numbers), np.int64)
    np.maximum.at(largest, tensor, cells)
    near = np.bincount(tensor, np.where(cells == 0, distances, 0), minlength=len(numbers))
    found: list[Content | None] = [None] * len(sizes)
    columns = table, lengths, largest, near
    for number, row, length, most, sum_ in zip(
        numbers.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        tail_width = max(most - LEVELS, 0).bit_length()
        found[number] = Content(sizes[number], tuple(row[:length]), row[LEVELS], tail_width, sum_)
    return found


class _Way(NamedTuple):
    """A way to make units of the tensors so far.

    Attributes:
        closed: cost of all units but the last.
        last: what the last unit holds; None for a tensor that must be one of its own.
        start: its first tensor.
        before: the way that ends where it starts.
    """

    closed: float
    last: Content | None
    start: int
    before: _Way | None

    @property
    def total(self) -> float:
        """Cost of all units that are examined."""
        return self.closed + (self.last.cost if self.last else 0.0)


def join(held: Sequence[Content | None], gains: Sequence[int]) -> Bools:
    """Which tensors to join to the one before, so that all units together cost least.

    Goes through the tensors with the three ways that are cheapest so far. With one way it would be
    greedy, and on small models lose up to a hundredth of a packet; with all it would be exact, and
    take longer than the rest of the encoder where there are hundreds of tensors.

    Args:
        held: by each tensor; None for one that must be a unit of its own.
        gains: of each tensor; a unit has one.

    >>> few, many = Content(64, (1, 1)), Content(1000, (900,))
    >>> join([few, few, many, None], [0, 0, 0, 0]).tolist()
    [False, True, False, False]
    """
    joined = np.ones(len(held), np.bool_)
    ways: list[_Way] = []
    for place, (own, gain) in enumerate(zip(held, gains, strict=True)):
        longer: list[_Way] = []
        if own is not None and place and gain == gains[place - 1]:
            longer = [way._replace(last=way.last + own) for way in ways if way.last]
        best = ways[0] if ways else None
        apart = _Way(best.total if best else 0.0, own, place, best)
        ways = sorted([*longer, apart], key=lambda way: way.total)[:_BREADTH]
    last = ways[0] if ways else None
    while last is not None:
        joined[last.start] = False
        last = last.before
    return joined


def _n_log_n(count: int) -> float:
    return count * math.log2(count) if count else 0.0


def _varint_bytes(value: int) -> int:
    return 1 if value < 0x80 else (value.bit_length() + 6) // 7
