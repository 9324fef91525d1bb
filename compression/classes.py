"""Row and column classes: where the kept values of a matrix lie, if they crowd in some rows.

Kept values are not spread evenly: whole outputs are quiet, whole inputs are dead. Rows with about
as many kept values (the same power of two) form a class, columns likewise; elements whose row and
column classes have the same sum are taken to be equally dense. Each such group is one universe,
its elements in row-major order, and is coded as a subset of its own. Rows and columns without a
kept value are in no group at all. A grid without classes is one group of all its elements.

A position costs more bits in a sparse group than in a dense one, so its dead zone is wider: as one
bit is worth 0.1155 squares of the step, ``θ_g² = θ² + 0.1155 (l_g - l)``, where ``l_g`` is log2 of
elements over kept values of the group, and l that of the densest. Both ends compute it from the
counts, by integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from compression.axes import Axes, Places
from compression.bits import Bools, Ints, bit_length
from compression.golomb import Subsets

Levels = Ints | NDArray[np.uint8]

MAX_CLASS = 15
GROUPS = 2 * MAX_CLASS - 1
"""Sums of a row and a column class, less 2."""
ROWS, COLUMNS = 1, 2
"""Flags of a unit: its rows have classes, its columns have."""

_ZONE_SQUARE = 473  # 0.1155 in squares of 1/64
_LOG_UNIT = 64
_NONE = 2 * MAX_CLASS + 1  # beyond every column class that makes a group


_CLASS_OF = bit_length(np.arange((1 << MAX_CLASS - 1) + 1))


def class_of(counts: Ints) -> Ints:
    """The class of rows or columns with so many kept values."""
    return _CLASS_OF[np.minimum(counts, len(_CLASS_OF) - 1)]


def histogram(owners: Places, classes: Levels, grids: int) -> Ints:
    """How many rows, or columns, of each class each grid has; shape ``(grids, 1 + MAX_CLASS)``."""
    keys = owners * (1 + MAX_CLASS) + classes
    return np.bincount(keys, minlength=grids * (1 + MAX_CLASS)).reshape(grids, 1 + MAX_CLASS)


def crossings(rows: Ints, columns: Ints) -> Ints:
    """Crossings in each group, from the histograms of both; shape ``(grids, GROUPS)``."""
    found = np.zeros((len(rows), GROUPS), np.int64)
    for number in np.flatnonzero(rows[:, 1:].any(axis=0)).tolist():
        found[:, number : number + MAX_CLASS] += rows[:, number + 1 : number + 2] * columns[:, 1:]
    return found


@dataclass(frozen=True)
class Classes:
    """The classes of the rows and columns of some grids, from 0 (empty) to ``MAX_CLASS``.

    Groups are numbered through, and so are the elements of all groups, which are their *places*.

    Attributes:
        axes: of the grids.
        rows, columns: the class of each; all 1 where they have none. A decoder holds them in bytes.
    """

    axes: Axes
    rows: Levels
    columns: Levels

    @classmethod
    def of(cls, axes: Axes, rows: Ints, columns: Ints, flags: Ints) -> Classes:
        """Classes by how many kept values each row and column has."""
        by_row = (flags & ROWS)[axes.grid_of_row] > 0
        by_column = (flags & COLUMNS)[axes.grid_of_column] > 0
        return cls(
            axes,
            np.where(by_row, class_of(rows), 1),
            np.where(by_column, class_of(columns), 1),
        )

    @cached_property
    def groups(self) -> Ints:
        """How many groups each grid has: one at least, which may have no element."""
        if not len(self.axes):
            return np.zeros(0, np.int64)
        most_rows = np.maximum.reduceat(self.rows, self.axes.first_rows).astype(np.int64)
        most_columns = np.maximum.reduceat(self.columns, self.axes.first_columns).astype(np.int64)
        return np.where((most_rows > 0) & (most_columns > 0), most_rows + most_columns - 1, 1)

    @cached_property
    def first_groups(self) -> Ints:
        """Number of the first group of each grid."""
        return np.cumsum(self.groups) - self.groups

    @cached_property
    def grid_of_group(self) -> Ints:
        """By number of the group."""
        return np.repeat(np.arange(len(self.axes)), self.groups)

    @cached_property
    def universes(self) -> Ints:
        """Elements of each group."""
        grids = len(self.axes)
        rows = histogram(self.axes.grid_of_row, self.rows, grids)
        found = crossings(rows, self._column_counts) * self.axes.depths[:, None]
        return found[np.arange(GROUPS) < self.groups[:, None]]

    @property
    def allowed(self) -> Bools:
        """Of which grids finding positions takes no more memory than the tensor has.

        The decoder refuses other classes, so that no packet makes it allocate by its own numbers.
        """
        axes = self.axes
        cells = self.groups * axes.rows + axes.columns
        return ~axes.several | (6 * cells <= axes.sizes)

    def subsets(self, in_rows: Ints, column: Ints, inner: Ints) -> tuple[Subsets, Ints, Ints]:
        """Kept elements as a subset of each group.

        Args:
            in_rows: elements of each row; they are ascending in the vector of all grids.
            column: of each, numbered through; none is in a row or column of class 0.
            inner: how deep each lies.

        Returns:
            The subsets, the order in which the elements come in them, and each one's group.
        """
        grid = self.axes.grid_of_row
        group: Ints = np.repeat(self.first_groups[grid] - 2 + self.rows, in_rows)
        group += self.columns[column]
        # In a group, ascending positions are ascending places, so to sort by group is enough.
        order = np.argsort(_narrow(group, len(self.universes)), kind="stable")
        cell = np.repeat(np.arange(len(grid)), in_rows)
        cell += self._row_to_cell[group]
        places = np.repeat(self.axes.depths[grid], in_rows)
        places *= self._ranks[column]
        places += self._bases[cell]
        places += inner
        members = np.bincount(group, minlength=len(self.universes))
        starts = np.cumsum(self.universes) - self.universes
        within = places[order] - np.repeat(starts, members)
        return Subsets(within, members, self.universes), order, group

    def positions(self, places: Ints, group: Ints) -> Ints:
        """The inverse of :meth:`subsets`: positions within the grid of each element.

        Args:
            places: of the elements where all groups stand one behind another.
            group: of each.
        """
        axes, grid, bases = self.axes, self.grid_of_group, self._bases
        # Rows without elements share their base with the next; the last of them is filled.
        cell = np.searchsorted(bases, places.astype(bases.dtype, copy=False), side="right") - 1
        row = cell - self._row_to_cell[group]
        depth = axes.depths[grid][group]
        inner = places - bases[cell]
        rank = (inner / depth).astype(np.int64)  # as exact as in Axes.split
        inner -= rank * depth
        rank += self._first_ordered[self._column_class[group] - self.rows[row]]
        width = axes.columns[grid]
        first = axes.first_rows[grid] * width + axes.first_columns[grid]
        crossing = row * width[group]
        crossing += self._ordered[rank]
        crossing -= first[group]
        crossing *= depth
        crossing += inner
        return crossing

    @cached_property
    def _column_counts(self) -> Ints:
        return histogram(self.axes.grid_of_column, self.columns, len(self.axes))

    @cached_property
    def _ordered(self) -> Places:
        """Columns by their grid and class."""
        keys = self.axes.grid_of_column * (1 + MAX_CLASS) + self.columns
        order = np.argsort(_narrow(keys, len(self.axes) * (1 + MAX_CLASS)), kind="stable")
        return order.astype(np.int32)

    @cached_property
    def _first_ordered(self) -> Ints:
        """Where each class of each grid begins among the ordered columns."""
        counts = self._column_counts.reshape(-1)
        return np.cumsum(counts) - counts

    @cached_property
    def _column_class(self) -> Ints:
        """Of each group: where its columns of class 0 would be in the histogram, if rows had 0."""
        local = np.arange(len(self.universes)) - self.first_groups[self.grid_of_group]
        return self.grid_of_group * (1 + MAX_CLASS) + local + 2

    @cached_property
    def _ranks(self) -> Ints:
        """The place of each column among those of its class."""
        keys = self.axes.grid_of_column * (1 + MAX_CLASS) + self.columns
        ranks = np.empty(len(keys), np.int64)
        ranks[self._ordered] = np.arange(len(keys))
        ranks -= self._first_ordered[keys]
        return ranks

    @cached_property
    def _row_to_cell(self) -> Ints:
        """What makes of the number of a row that of its cell, by group."""
        rows = self.axes.rows[self.grid_of_group]
        return np.cumsum(rows) - rows - self.axes.first_rows[self.grid_of_group]

    @cached_property
    def _bases(self) -> Ints | Places:
        """How many elements come before each row of each group, in all groups together.

        Its cells are group by group; they are as narrow as they can be, for they are many.
        """
        axes, grid = self.axes, self.grid_of_group
        wide = int(self.universes.sum()) >= 2**31
        dtype = np.dtype(np.int64 if wide else np.int32)
        # Elements of a row in a group, by the sum of both less the class of the row.
        width = _NONE + GROUPS
        elements: Ints | Places = np.zeros((len(axes), width), dtype)
        elements[:, MAX_CLASS + 1 : 2 * MAX_CLASS + 1] = (
            self._column_counts[:, 1:] * axes.depths[:, None]
        )
        of_row = np.where(self.rows > 0, MAX_CLASS + 2 - self.rows.astype(np.int64), _NONE)
        lengths = axes.rows[grid]
        row = np.arange(int(lengths.sum()), dtype=np.int32)
        row -= np.repeat(self._row_to_cell.astype(np.int32), lengths)
        key = of_row.astype(np.int32)[row]
        del row
        local = np.arange(len(grid)) - self.first_groups[grid]
        key += np.repeat((grid * width + local).astype(np.int32), lengths)
        counts = elements.reshape(-1)[key]
        del key
        bases: Ints | Places = np.cumsum(counts, dtype=dtype)
        np.subtract(bases, counts, out=bases)
        return bases


def zones_of(universes: Ints, counts: Ints, firsts: Ints, densest: Ints) -> Ints:
    """The dead zone of each group in 1/64.

    Args:
        universes: elements of each group.
        counts: kept values of each group.
        firsts: where the groups of each unit begin; a unit has one at least.
        densest: dead zone of the group of each unit that has most of its elements kept.
    """
    if len(firsts) == len(universes):
        return densest
    logs = log2_ratio(universes, np.maximum(counts, 1))
    lengths = np.diff(firsts, append=len(universes))
    least = np.minimum.reduceat(np.where(counts > 0, logs, np.iinfo(np.int64).max), firsts)
    more = np.maximum(logs - np.repeat(least, lengths), 0)
    squares = np.repeat(densest**2, lengths) + _ZONE_SQUARE * more // _LOG_UNIT
    # Exact: below 2^53, and IEEE rounds square roots correctly.
    zones: Ints = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    return zones


def _narrow(keys: Ints, count: int) -> NDArray[np.integer]:
    """Keys below ``count`` in 16 bits, where numpy sorts by radix, if they fit."""
    return keys.astype(np.uint16) if count <= 1 << 16 else keys


def log2_ratio(above: Ints, below: Ints) -> Ints:
    """Log2 of a ratio of 1 or more in 1/64, linear between powers of two, by integers alone.

    >>> log2_ratio(np.array([8, 3, 1]), np.array([1, 2, 1])).tolist()
    [192, 32, 0]
    """
    scaled = (np.maximum(above, below) << 20) // below
    power = bit_length(scaled) - 1
    fraction = (scaled >> (power - 6)) - _LOG_UNIT
    logs: Ints = (power - 20) * _LOG_UNIT + fraction
    return logs
