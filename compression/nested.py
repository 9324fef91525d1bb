"""Nested subsets: which values lie in cell 1 or above, which of those in 2 or above, ...

Each plane is a subset of the one before, so plain subset codes carry the cells below their order-0
entropy: every unit has its own density in every plane. Cells from ``LEVELS`` on are rare and go as
numbers of a fixed width a unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compression.bits import Ints, bit_length
from compression.golomb import Subsets, joined

LEVELS = 16
MAX_TAIL_BITS = 20  # cells reach quantise.MAX_CELL, so tails stay below 2^20


@dataclass(frozen=True)
class Nested:
    """Cells as nested subsets.

    Attributes:
        levels: for each plane the members in each unit; plane 0 counts all values.
        subsets: of all planes from 1 and all units, plane by plane.
        tails: ``cell - LEVELS`` of the values in the last plane.
        tail_widths: bits of a tail in each unit.
    """

    levels: list[Ints]
    subsets: Subsets
    tails: Ints
    tail_widths: Ints


def nest(counts: Ints, cells: Ints) -> Nested:
    """Split cells into planes.

    Args:
        counts: values of each unit.
        cells: of each value, unit by unit.
    """
    unit = np.repeat(np.arange(len(counts)), counts)
    levels: list[Ints] = [counts]
    parts: list[Subsets] = []
    while levels[-1].any() and len(levels) <= LEVELS:
        inside = np.flatnonzero(cells >= len(levels))
        universe = levels[-1]
        cells, unit = cells[inside], unit[inside]
        members = np.bincount(unit, minlength=len(counts))
        starts = np.cumsum(universe) - universe
        parts.append(Subsets(inside - starts[unit], members, universe))
        levels.append(members)
    tails = cells - LEVELS
    largest = np.zeros(len(counts), np.int64)
    np.maximum.at(largest, unit, tails)
    return Nested(levels, joined(parts), tails, bit_length(largest))


def plane_counts(levels: list[Ints]) -> tuple[Ints, Ints]:
    """Members and universe of every subset of :class:`Nested`, plane by plane."""
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *levels[1:]]), np.concatenate([empty, *levels[:-1]])
