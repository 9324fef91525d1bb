"""Which units have row or column classes, chosen by what each way of coding costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compression import golomb
from compression.axes import Axes
from compression.bits import Bools, Ints
from compression.classes import COLUMNS, ROWS, Classes, zones_of
from compression.golomb import Subsets
from compression.nested import nest
from compression.units import Units
from compression.ways import Crowd, ways

_LEVEL_BITS = 8


@dataclass(frozen=True)
class Placement:
    """Where the kept values lie, and the order in which they travel.

    Attributes:
        subsets: one for each group of each unit; a unit without classes is one group.
        order: of the kept values, as places in the ascending order.
        flags: by unit, ROWS and COLUMNS.
        classes: of all units; None where no unit has any.
        group: of each kept value, in ascending order.
    """

    subsets: Subsets
    order: Ints
    flags: Ints
    classes: Classes | None
    group: Ints

    def zones(self, dead_zones: Ints, counts: Ints) -> Ints:
        """The dead zone of each kept value in ascending order, from that of its unit."""
        if self.classes is None:
            return np.repeat(dead_zones, counts)
        subsets = self.subsets
        zones = zones_of(subsets.universes, subsets.counts, self.classes.first_groups, dead_zones)
        return zones[self.group]

    @property
    def groups(self) -> Ints:
        """How many groups each unit has."""
        return np.ones(len(self.flags), np.int64) if self.classes is None else self.classes.groups

    def maps(self, unit: int) -> list[Ints]:
        """The class arrays of a unit that travel: of its rows, then of its columns."""
        found: list[Ints] = []
        if self.classes is None:
            return found
        axes, flags = self.classes.axes, int(self.flags[unit])
        if flags & ROWS:
            first = int(axes.first_rows[unit])
            found.append(np.asarray(self.classes.rows[first : first + int(axes.rows[unit])]))
        if flags & COLUMNS:
            first = int(axes.first_columns[unit])
            found.append(np.asarray(self.classes.columns[first : first + int(axes.columns[unit])]))
        return found


def place(units: Units, counts: Ints, indices: Ints, flags: Ints | None = None) -> Placement:
    """Choose the flags of every unit, or take those given.

    Args:
        units: what is coded together.
        counts: kept values of each unit.
        indices: of the kept values in the flat vector, ascending.
        flags: chosen before, for about the same values; None to choose. Units of which a decoder
            would not accept so many classes go without.
    """
    return _placed(
        units, counts, indices, _chosen(units, counts, indices) if flags is None else flags
    )


def gridded(units: Units, flags: Ints | Bools) -> Axes:
    """The grids of units; those without flags are one row and one column."""
    return Axes.of(
        tensor.shape if flags[unit] and tensor is not None else (size,)
        for unit, (tensor, size) in enumerate(zip(units.tensors, units.sizes.tolist(), strict=True))
    )


def _placed(units: Units, counts: Ints, indices: Ints, flags: Ints) -> Placement:
    if not flags.any():
        unit = np.repeat(np.arange(len(units)), counts)
        plain = _plain(units, counts, indices)
        return Placement(plain, np.arange(len(indices)), flags, None, unit)
    axes = gridded(units, flags)
    in_rows, column, inner = axes.split(indices)
    crowd = Crowd.of(axes, in_rows, column)
    classes = Classes.of(axes, in_rows, crowd.in_columns, flags)
    if not classes.allowed.all():  # flags chosen for other values: one more class is too many
        return _placed(units, counts, indices, np.where(classes.allowed, flags, 0))
    subsets, order, group = classes.subsets(in_rows, column, inner)
    return Placement(subsets, order, flags, classes, group)


def _plain(units: Units, counts: Ints, indices: Ints) -> Subsets:
    return Subsets(indices - np.repeat(units.starts, counts), counts, units.sizes)


def _chosen(units: Units, counts: Ints, indices: Ints) -> Ints:
    """The flags of fewest bits by entropies, or none where the exact bits are not fewer."""
    may = np.array([tensor is not None and len(tensor.shape) > 1 for tensor in units.tensors], bool)
    axes = gridded(units, may)
    in_rows, column, _ = axes.split(indices)
    flags: Ints = np.argmin(ways(axes, Crowd.of(axes, in_rows, column), may).bits, axis=0)
    if flags.any():
        plain = golomb.code(_plain(units, counts, indices)).subset_bits
        flags[_bits(_placed(units, counts, indices, flags)) >= plain] = 0
    return flags


def _bits(placement: Placement) -> Ints:
    """The exact bits of positions, group counts and maps of each unit."""
    subsets, firsts = placement.subsets, np.cumsum(placement.groups) - placement.groups
    bits: Ints = np.add.reduceat(golomb.code(subsets).subset_bits, firsts)
    for unit in np.flatnonzero(placement.flags).tolist():
        own = slice(int(firsts[unit]), int(firsts[unit] + placement.groups[unit]))
        bits[unit] += _count_bits(subsets.counts[own][subsets.universes[own] > 0][:-1])
        for array in placement.maps(unit):
            nested = nest(np.array([len(array)]), array)
            bits[unit] += golomb.code(nested.subsets).bit_count
            bits[unit] += _count_bits(np.concatenate(nested.levels[1:]))
    return bits


def _count_bits(counts: Ints) -> int:
    """Bits of counts in LEB128."""
    return int(_LEVEL_BITS * (1 + (counts > 0x7F) + (counts > 0x3FFF)).sum())
