"""What positions take by each choice of flags, by entropies: no classes, by rows, columns, both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression.axes import Axes
from compression.bits import Bools, Ints
from compression.classes import GROUPS, MAX_CLASS, class_of, crossings, histogram
from compression.entropy import entropy

Doubles = NDArray[np.float64]

# A tensor of fewer kept values cannot pay for its classes.
LEAST_KEPT = 48


@dataclass(frozen=True)
class Ways:
    """The four ways, or only the first where none has classes.

    Attributes:
        bits: of all positions of each grid, shape ``(ways, grids)``; infinite where it cannot be.
        members, universes: kept values and elements of each group, shape ``(ways, grids, GROUPS)``.
        row_classes, column_classes: of all rows and columns, should they have any.
    """

    bits: Doubles
    members: Ints
    universes: Ints
    row_classes: Ints
    column_classes: Ints


@dataclass(frozen=True)
class Crowd:
    """Where kept values lie, in ascending order.

    Attributes:
        column: of each, numbered through.
        in_rows, in_columns: how many there are in each row and column.
        counts: in each grid.
    """

    column: Ints
    in_rows: Ints
    in_columns: Ints
    counts: Ints

    @classmethod
    def of(cls, axes: Axes, in_rows: Ints, column: Ints) -> Crowd:
        """Count them."""
        in_columns = np.bincount(column, minlength=len(axes.grid_of_column))
        counts = np.add.reduceat(in_rows, axes.first_rows) if len(axes) else in_rows
        return cls(column, in_rows, in_columns, counts)


def ways(axes: Axes, crowd: Crowd, may: Bools) -> Ways:
    """Weigh them.

    Args:
        axes: of the grids.
        crowd: the kept values.
        may: grids that may have classes.
    """
    grids, counts = len(axes), crowd.counts
    row_classes, column_classes = class_of(crowd.in_rows), class_of(crowd.in_columns)
    tried = np.flatnonzero(may & (counts >= LEAST_KEPT))
    shape = (4 if len(tried) else 1, grids)
    members, universes = np.zeros((*shape, GROUPS), np.int64), np.zeros((*shape, GROUPS), np.int64)
    members[0, :, 0], universes[0, :, 0] = counts, axes.sizes
    bits = np.full(shape, np.inf)
    bits[0] = entropy(counts, axes.sizes)
    if len(tried):
        rows = histogram(axes.grid_of_row, row_classes, grids)[tried]
        columns = histogram(axes.grid_of_column, column_classes, grids)[tried]
        found = _members(axes, crowd, row_classes, column_classes)[:, tried]
        there = np.zeros((3, len(tried), GROUPS), np.int64)
        there[0, :, :MAX_CLASS] = rows[:, 1:] * axes.columns[tried, None]
        there[1, :, :MAX_CLASS] = columns[:, 1:] * axes.rows[tried, None]
        there[2] = crossings(rows, columns)
        there *= axes.depths[tried, None]
        maps = _map_bits(np.concatenate([rows, columns])).reshape(2, -1)
        own = entropy(found, there).sum(axis=2) + _varint_bits(found, there)
        own[:2] += maps
        own[2] += maps[0] + maps[1]
        groups = GROUPS - np.argmax(there[:, :, ::-1] > 0, axis=2)
        cells = groups * axes.rows[tried] + axes.columns[tried]
        bits[1:, tried] = np.where(6 * cells <= axes.sizes[tried], own, np.inf)
        members[1:, tried], universes[1:, tried] = found, there
    return Ways(bits, members, universes, row_classes, column_classes)


def _members(axes: Axes, crowd: Crowd, row_classes: Ints, column_classes: Ints) -> Ints:
    """Kept values of each group by rows, by columns and by both; shape ``(3, grids, GROUPS)``."""
    keys = len(axes) * GROUPS
    first = axes.grid_of_row * GROUPS
    # Nothing is kept in class 0, so it may count for class 1.
    by_rows = first + np.maximum(row_classes, 1) - 1
    by_columns = axes.grid_of_column * GROUPS + np.maximum(column_classes, 1) - 1
    by_both = np.repeat(first + row_classes - 2, crowd.in_rows)
    by_both += column_classes[crowd.column]
    found = np.empty((3, keys), np.int64)
    found[0] = np.bincount(by_rows, crowd.in_rows, keys)
    found[1] = np.bincount(by_columns, crowd.in_columns, keys)
    found[2] = np.bincount(by_both, minlength=keys)
    return found.reshape(3, len(axes), GROUPS)


def _map_bits(classes: Ints) -> Doubles:
    """Bits of the class maps of each grid, by the entropy of their planes."""
    at_least = np.cumsum(classes[:, ::-1], axis=1)[:, ::-1]
    inner = at_least[:, 1:]
    counts = 8.0 * ((inner > 0) * (1 + (inner > 0x7F))).sum(axis=1) + 8
    bits: Doubles = entropy(inner, at_least[:, :-1]).sum(axis=1) + counts
    return bits


def _varint_bits(members: Ints, universes: Ints) -> Doubles:
    """Bits of the counts of all groups but the last."""
    sizes = 1 + (members > 0x7F) + (members > 0x3FFF)
    bits: Doubles = 8.0 * (sizes * (universes > 0)).sum(axis=-1) - 8
    return bits
