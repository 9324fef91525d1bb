"""Row and column classes: where the kept values of a matrix lie, if they crowd in some rows.

Kept values are not spread evenly: whole outputs are quiet, whole inputs are dead. Rows with about
as many kept values (the same power of two) form a class, columns likewise; elements whose row and
column classes have the same sum are taken to be equally dense. Each such group is one universe,
its elements in row-major order, and is coded as a subset of its own. Rows and columns without a
kept value are in no group at all.

A tensor of shape ``(rows, columns, ...)`` has ``depth`` elements for each row and column.

A position costs more bits in a sparse group than in a dense one, so its dead zone is wider: as one
bit is worth 0.1155 squares of the step, ``θ_g² = θ² + 0.1155 (l_g - l)``, where ``l_g`` is log2 of
elements over kept values of the group, and l that of the densest. Both ends compute it from the
counts, by integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from compression.bits import Ints, bit_length
from compression.golomb import Subsets

Places = NDArray[np.int32]
Levels = Ints | NDArray[np.uint8]

MAX_CLASS = 15
_ZONE_SQUARE = 473  # 0.1155 in squares of 1/64
_LOG_UNIT = 64
ROWS, COLUMNS = 1, 2
"""Flags of a unit: its rows have classes, its columns have."""


@dataclass(frozen=True)
class Grid:
    """A tensor as rows of columns of ``depth`` elements.

    >>> Grid.of((8, 4, 3, 3))
    Grid(rows=8, columns=4, depth=9)
    """

    rows: int
    columns: int
    depth: int

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> Grid:
        """The grid of a tensor of two dimensions or more."""
        return cls(shape[0], shape[1], prod(shape[2:]))

    def split(self, positions: Ints) -> tuple[Ints, Ints, Ints]:
        """Row, column and depth of flat positions."""
        row, rest = _divided(positions, self.columns * self.depth)
        return row, *_divided(rest, self.depth)


@dataclass(frozen=True)
class Classes:
    """The classes of a grid's rows and columns, from 0 (empty) to ``MAX_CLASS``.

    Attributes:
        grid: of the tensor.
        rows, columns: the class of each; all 1 where they have none. A decoder holds them in bytes.
    """

    grid: Grid
    rows: Levels
    columns: Levels

    @classmethod
    def of(cls, grid: Grid, rows: Ints, columns: Ints, flags: int) -> Classes:
        """Classes by how many kept values each row and column has."""
        ones = np.ones_like
        return cls(
            grid,
            np.minimum(bit_length(rows), MAX_CLASS) if flags & ROWS else ones(rows),
            np.minimum(bit_length(columns), MAX_CLASS) if flags & COLUMNS else ones(columns),
        )

    @cached_property
    def universes(self) -> Ints:
        """Elements of each group, from the sparsest."""
        rows = np.bincount(self.rows)[1:]
        columns = np.bincount(self.columns)[1:]
        if not len(rows) or not len(columns):
            return np.zeros(1, np.int64)
        return np.convolve(rows, columns).astype(np.int64) * self.grid.depth

    def groups(self, row: Ints, column: Ints) -> Ints:
        """The group of elements in these rows and columns, none of which is empty."""
        numbers: Ints = self.rows[row].astype(np.int64) + self.columns[column] - 2
        return numbers

    @property
    def table_cells(self) -> int:
        """Numbers that finding a position takes in memory."""
        return len(self.universes) * self.grid.rows + self.grid.columns

    def subsets(self, positions: Ints) -> tuple[Subsets, Ints, Ints]:
        """Ascending kept positions as a subset of each group.

        Returns:
            The subsets, the order in which the positions come in them, and each one's group.
        """
        row, column, inner = self.grid.split(positions)
        group = self.groups(row, column)
        rank = self._ranks[column]
        depth = self.grid.depth
        flat = self._bases[group * self.grid.rows + row] + rank * depth + inner
        # In a group, ascending positions are ascending places, so to sort by group is enough.
        order = np.argsort(group.astype(np.uint8), kind="stable")
        counts = np.bincount(group, minlength=len(self.universes))
        starts = np.cumsum(self.universes) - self.universes
        within = flat[order] - np.repeat(starts, counts)
        return Subsets(within, counts, self.universes), order, group

    def positions(self, flat: Ints) -> Ints:
        """The inverse of :meth:`subsets`: flat positions of elements.

        Args:
            flat: places of the elements where all groups stand one behind another.
        """
        # Empty cells of the table share their base with the next; the last of them is filled.
        cell = np.searchsorted(self._bases, flat, side="right") - 1
        group, row = _divided(cell, self.grid.rows)
        rank, inner = _divided(flat - self._bases[cell], self.grid.depth)
        firsts = np.cumsum(self._column_counts) - self._column_counts
        column = self._ordered[firsts[group + 2 - self.rows[row]] + rank]
        positions: Ints = (row * self.grid.columns + column) * self.grid.depth + inner
        return positions

    def zones(self, counts: Ints, densest: int) -> Ints:
        """The dead zone of each group in 1/64.

        Args:
            counts: kept values of each group.
            densest: dead zone of the group that has most of its elements kept.
        """
        logs = log2_ratio(self.universes, np.maximum(counts, 1))
        least = logs[counts > 0].min(initial=int(logs.max(initial=0)))
        squares = densest**2 + _ZONE_SQUARE * np.maximum(logs - least, 0) // _LOG_UNIT
        # Exact: below 2^53, and IEEE rounds square roots correctly.
        zones: Ints = np.sqrt(squares.astype(np.float64)).astype(np.int64)
        return zones

    @cached_property
    def _column_counts(self) -> Ints:
        return np.bincount(self.columns, minlength=MAX_CLASS + 1)

    @cached_property
    def _ordered(self) -> Places:
        """Columns by their class."""
        return np.argsort(self.columns, kind="stable").astype(np.int32)

    @cached_property
    def _ranks(self) -> Ints:
        """The place of each column among those of its class."""
        ordered = self._ordered
        firsts = np.cumsum(self._column_counts) - self._column_counts
        ranks = np.empty(len(ordered), np.int64)
        ranks[ordered] = np.arange(len(ordered)) - firsts[self.columns[ordered]]
        return ranks

    @cached_property
    def _bases(self) -> Ints:
        """For each group and row, how many elements come before it in all groups together."""
        groups = len(self.universes)
        # By group + 2 - class of the row, which is below 1 or beyond all where there is no column.
        by_class = np.zeros(2 * (groups + MAX_CLASS) + 2, np.int64)
        by_class[MAX_CLASS : 2 * MAX_CLASS + 1] = self._column_counts * self.grid.depth
        by_class[MAX_CLASS] = 0
        rows = np.where(self.rows > 0, MAX_CLASS + 2 - self.rows, groups + 2 * MAX_CLASS + 2)
        counts = by_class[np.arange(groups)[:, None] + rows].reshape(-1)
        return np.cumsum(counts) - counts


def _divided(values: Ints, by: int) -> tuple[Ints, Ints]:
    """Quotients and remainders; numpy divides by one number much faster than it does divmod."""
    if by <= 1:
        return values, np.zeros_like(values)
    quotients: Ints = values // by
    return quotients, values - quotients * by


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
