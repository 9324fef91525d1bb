"""Tensors as rows of columns, numbered through, so that all of them are worked on at once.

A tensor of shape ``(R, C, ...)`` is a grid of R rows and C columns with ``depth`` elements at each
of their crossings. A vector, or a unit of several tensors, is one row and one column of its whole
depth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from compression.bits import Bools, Ints, Whole

Places = NDArray[np.int32]

_LARGE = 1024  # elements


@dataclass(frozen=True)
class Axes:
    """Some grids.

    Attributes:
        rows, columns: how many each grid has.
        depths: elements at each crossing of a grid.
    """

    rows: Ints
    columns: Ints
    depths: Ints

    @classmethod
    def of(cls, shapes: Iterable[tuple[int, ...]]) -> Axes:
        """The grids of tensors of these shapes.

        >>> axes = Axes.of([(8, 4, 3, 3), (5,), ()])
        >>> axes.rows.tolist(), axes.columns.tolist(), axes.depths.tolist()
        ([8, 1, 1], [4, 1, 1], [9, 5, 1])
        """
        grids = []
        for shape in shapes:
            size: int = prod(shape)
            several = len(shape) > 1 and size > 0
            first: tuple[int, ...] = shape[:2] if several else (1, 1)
            grids.append((*first, size // prod(first)))
        rows, columns, depths = np.array(grids, np.int64).reshape(-1, 3).T
        return cls(rows, columns, depths)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def sizes(self) -> Ints:
        """Elements of each grid."""
        return self.rows * self.columns * self.depths

    @cached_property
    def several(self) -> Bools:
        """Grids of more than one row or column."""
        return (self.rows > 1) | (self.columns > 1)

    @cached_property
    def first_rows(self) -> Ints:
        """Number of the first row of each grid."""
        return np.cumsum(self.rows) - self.rows

    @cached_property
    def first_columns(self) -> Ints:
        """Number of the first column of each grid."""
        return np.cumsum(self.columns) - self.columns

    @cached_property
    def grid_of_row(self) -> Places:
        """By number of the row."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.rows)

    @cached_property
    def grid_of_column(self) -> Places:
        """By number of the column."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.columns)

    @cached_property
    def row_ends(self) -> Ints:
        """Where each row ends in the vector of all grids one behind another."""
        return np.cumsum(np.repeat(self.columns * self.depths, self.rows))

    @cached_property
    def large(self) -> int:
        """How many grids at the front are large enough to be worked on one by one."""
        small = np.flatnonzero(~self.several | (self.sizes < _LARGE))
        return int(small[0]) if len(small) else len(self)

    @cached_property
    def rest(self) -> tuple[Ints, Places]:
        """Of all elements behind the large grids: how many lie in each row, and their columns."""
        start, end = int(self.sizes[: self.large].sum()), int(self.sizes.sum())
        in_rows, column, _ = self.split(np.arange(start, end))
        return in_rows, column.astype(np.int32)

    def in_rows(self, indices: Whole) -> Ints:
        """How many of the ascending ``indices`` into the vector of all grids lie in each row."""
        return counts_between(indices, self.row_ends)

    def split(self, indices: Ints) -> tuple[Ints, Ints, Ints]:
        """How many elements lie in each row, the column of each, numbered through, and its depth.

        Args:
            indices: ascending, into the vector of all grids.
        """
        in_rows, grid = self.in_rows(indices), self.grid_of_row
        starts = np.empty_like(self.row_ends)
        starts[:1], starts[1:] = 0, self.row_ends[:-1]
        inner = indices - np.repeat(starts, in_rows)
        depth = np.repeat(self.depths[grid], in_rows)
        # By floating point, which is several times as fast as integer division. It is exact below
        # 2^52: a quotient just below a whole number is off it by 1 / depth at least, which float64
        # does not round away.
        column = (inner / depth).astype(np.int64)
        inner -= column * depth
        column += np.repeat(self.first_columns[grid], in_rows)
        return in_rows, column, inner


def counts_between(ascending: Whole, ends: Ints) -> Ints:
    """How many numbers lie below the first end, from there to the second, and so on.

    >>> counts_between(np.array([0, 1, 5, 8]), np.array([2, 4, 9])).tolist()
    [2, 0, 2]
    """
    counts = np.searchsorted(ascending, ends)
    counts[1:] -= counts[:-1].copy()
    return counts
