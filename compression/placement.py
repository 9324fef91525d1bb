"""Which units have row or column classes, chosen by what each way of coding costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compression import golomb
from compression.bits import Ints
from compression.classes import COLUMNS, ROWS, Classes, Grid, Levels
from compression.entropy import entropy
from compression.golomb import Subsets, joined
from compression.nested import nest
from compression.units import Units

# A unit of fewer kept values cannot pay for its classes.
LEAST_KEPT = 48
_LEVEL_BITS = 8


@dataclass(frozen=True)
class Placement:
    """Where the kept values lie, and the order in which they travel.

    Attributes:
        subsets: one for each unit without classes, one for each group of a unit that has them.
        order: of the kept values, as places in the ascending order.
        flags: by unit, ROWS and COLUMNS.
        classes: by unit that has them.
        groups: of the kept values of each unit that has classes, in ascending order.
    """

    subsets: Subsets
    order: Ints
    flags: Ints
    classes: Mapping[int, Classes]
    groups: Mapping[int, Ints]

    def zones(self, dead_zones: Ints, counts: Ints) -> Ints:
        """The dead zone of each kept value in ascending order, from that of its unit."""
        zones = np.repeat(dead_zones, counts)
        starts = np.cumsum(counts) - counts
        for unit, group in self.groups.items():
            own = self.classes[unit]
            members = np.bincount(group, minlength=len(own.universes))
            found = own.zones(members, int(dead_zones[unit]))
            zones[starts[unit] : starts[unit] + counts[unit]] = found[group]
        return zones


def place(units: Units, counts: Ints, indices: Ints, flags: Ints | None = None) -> Placement:
    """Choose the flags of every unit, or take those given where the classes can be had.

    Args:
        units: what is coded together.
        counts: kept values of each unit.
        indices: of the kept values in the flat vector, ascending.
        flags: chosen before, for about the same values; None to choose.
    """
    chosen = np.zeros(len(units), np.int64) if flags is None else flags.copy()
    positions = indices - np.repeat(units.starts, counts)
    parts = np.split(positions, np.cumsum(counts)[:-1])
    classes: dict[int, Classes] = {}
    for number in np.flatnonzero(counts >= LEAST_KEPT if flags is None else chosen).tolist():
        tensor = units.tensors[number]
        if tensor is None or len(tensor.shape) < 2:
            continue
        if flags is None:
            chosen[number] = _cheapest(Grid.of(tensor.shape), parts[number])
        if chosen[number]:
            classes[number] = _classes(Grid.of(tensor.shape), parts[number], int(chosen[number]))
    coded = {number: found.subsets(parts[number]) for number, found in classes.items()}
    if flags is None and coded:
        for number in _dearer(units, counts, parts, classes, coded):
            chosen[number] = 0
            del classes[number], coded[number]
    subsets, order = _together(units, counts, parts, coded)
    groups = {number: group for number, (_, _, group) in coded.items()}
    return Placement(subsets, order, chosen, classes, groups)


def allowed(classes: Classes) -> bool:
    """Whether finding positions takes no more memory than the tensor has.

    The decoder refuses other classes, so that no packet makes it allocate by its own numbers.
    """
    grid = classes.grid
    return 6 * classes.table_cells <= grid.rows * grid.columns * grid.depth


def map_subsets(classes: Mapping[int, Classes], flags: Ints) -> list[Ints]:
    """The class arrays that travel, unit by unit: of the rows, then of the columns."""
    arrays: list[Ints] = []
    for number, found in classes.items():
        arrays += [found.rows.astype(np.int64)] if flags[number] & ROWS else []
        arrays += [found.columns.astype(np.int64)] if flags[number] & COLUMNS else []
    return arrays


def _together(
    units: Units, counts: Ints, parts: list[Ints], coded: Mapping[int, tuple[Subsets, Ints, Ints]]
) -> tuple[Subsets, Ints]:
    starts = np.cumsum(counts) - counts
    order = np.arange(int(counts.sum()))
    if not coded:
        positions = np.concatenate([np.zeros(0, np.int64), *parts])
        return Subsets(positions, counts, units.sizes), order
    subsets = []
    for number, part in enumerate(parts):
        if number in coded:
            found, own, _ = coded[number]
            order[starts[number] : starts[number] + counts[number]] = own + starts[number]
        else:
            found = Subsets(part, counts[number : number + 1], units.sizes[number : number + 1])
        subsets.append(found)
    return joined(subsets), order


def _classes(grid: Grid, positions: Ints, flags: int) -> Classes:
    row, column, _ = grid.split(positions)
    rows = np.bincount(row, minlength=grid.rows)
    return Classes.of(grid, rows, np.bincount(column, minlength=grid.columns), flags)


def _cheapest(grid: Grid, positions: Ints) -> int:
    """The flags of fewest bits, by entropies."""
    row, column, _ = grid.split(positions)
    rows = np.bincount(row, minlength=grid.rows)
    columns = np.bincount(column, minlength=grid.columns)
    size = grid.rows * grid.columns * grid.depth
    best, least = 0, float(entropy(np.array([len(positions)]), np.array([size])).sum())
    maps = {
        flag: _map_bits(array)
        for flag, array in (
            (ROWS, Classes.of(grid, rows, columns, ROWS).rows),
            (COLUMNS, Classes.of(grid, rows, columns, COLUMNS).columns),
        )
    }
    for flags in (ROWS, COLUMNS, ROWS | COLUMNS):
        found = Classes.of(grid, rows, columns, flags)
        if not allowed(found):
            continue
        members = np.bincount(found.groups(row, column), minlength=len(found.universes))
        bits = float(entropy(members, found.universes).sum())
        bits += _count_bits(members[found.universes > 0][:-1])
        bits += sum(maps[flag] for flag in (ROWS, COLUMNS) if flags & flag)
        if bits < least:
            best, least = flags, bits
    return best


def _dearer(
    units: Units,
    counts: Ints,
    parts: list[Ints],
    classes: Mapping[int, Classes],
    coded: Mapping[int, tuple[Subsets, Ints, Ints]],
) -> list[int]:
    """Units whose classes cost more than they save, by the exact bits."""
    numbers = list(coded)
    plain = Subsets(
        np.concatenate([parts[n] for n in numbers]), counts[numbers], units.sizes[numbers]
    )
    groups = [coded[n][0] for n in numbers]
    group_bits = golomb.code(joined(groups)).subset_bits
    lengths = np.cumsum([len(g.counts) for g in groups])
    plain_bits = golomb.code(plain).subset_bits
    found = []
    for number, without, bits in zip(
        numbers, plain_bits.tolist(), np.split(group_bits, lengths[:-1]), strict=True
    ):
        own = classes[number]
        subsets = coded[number][0]
        cost = int(bits.sum()) + _count_bits(subsets.counts[subsets.universes > 0][:-1])
        for array in (own.rows, own.columns):
            if array.min(initial=1) != 1 or array.max(initial=1) != 1:
                nested = nest(np.array([len(array)]), array.astype(np.int64))
                cost += golomb.code(nested.subsets).bit_count
                cost += _count_bits(np.concatenate(nested.levels[1:]))
        if cost >= without:
            found.append(number)
    return found


def _map_bits(classes: Levels) -> float:
    """Bits of a map, by the entropy of its planes."""
    at_least = np.cumsum(np.bincount(classes)[::-1])[::-1]
    inner = np.append(at_least[1:], 0)
    return float(entropy(inner, at_least).sum()) + _count_bits(inner)


def _count_bits(counts: Ints) -> int:
    """Bits of counts in LEB128."""
    return int(_LEVEL_BITS * (1 + (counts > 0x7F) + (counts > 0x3FFF)).sum())
