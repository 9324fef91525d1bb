"""Dead zones of all values, which differ by the group that a value is in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression.axes import Axes, Places
from compression.bits import Ints
from compression.classes import GROUPS, MAX_CLASS
from compression.segments import Floats
from compression.ways import Doubles

# A row or column that holds nothing takes its crossings out of all groups.
_NOTHING = -MAX_CLASS
# Of a tensor: as many for values in no group as there are sums below the first group's.
_NO_GROUP = 2 + 2 * MAX_CLASS
_WIDTH = _NO_GROUP + GROUPS
# What a row or column of each class adds to the place of a zone.
_ADDS = np.array([_NOTHING, *range(1, 1 + MAX_CLASS)], np.int32)


@dataclass(frozen=True)
class Zones:
    """Dead zones in steps, by the group of each value.

    Attributes:
        rows, columns: numbers of which the sum is the place of a zone, for each row and column.
        zones: of all tensors one behind another.
    """

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    zones: Floats

    @classmethod
    def of(cls, axes: Axes, rows: Ints, columns: Ints, zones: Doubles) -> Zones:
        """Zones of groups.

        Args:
            axes: of all tensors.
            rows: the class of each.
            columns: the class of each.
            zones: shape ``(tensors, 1 + GROUPS)``; the first is for values in no group.
        """
        table = np.empty((len(axes), _WIDTH), np.float32)
        table[:, :_NO_GROUP] = zones[:, :1]
        table[:, _NO_GROUP:] = zones[:, 1:]
        first = axes.grid_of_row * np.int32(_WIDTH) + np.int32(2 * MAX_CLASS)
        return cls(first + _ADDS[rows], _ADDS[columns], table.reshape(-1))

    @classmethod
    def flat(cls, axes: Axes, zones: Doubles) -> Zones:
        """One zone for each tensor."""
        ones = np.ones(len(axes.grid_of_row), np.int64), np.ones(len(axes.grid_of_column), np.int64)
        return cls.of(axes, *ones, np.repeat(zones[:, None], 1 + GROUPS, axis=1))

    def of_rows(self, axes: Axes) -> Floats:
        """The narrowest zone that a value of each row can have."""
        if not len(axes):
            return self.zones
        most = np.maximum.reduceat(self.columns, axes.first_columns)
        narrowest = np.minimum.accumulate(self.zones.reshape(-1, _WIDTH), axis=1)
        zones: Floats = narrowest.reshape(-1)[self.rows + most[axes.grid_of_row]]
        return zones

    def of_values(self, in_rows: Ints, columns: Ints | Places) -> Floats:
        """The zone of values, of which so many are in each row, in these columns."""
        place = np.repeat(self.rows, in_rows)
        place += self.columns[columns]
        return self.zones[place]

    def limits(self, axes: Axes, number: int, step: float, most: float) -> Floats:
        """Zones times a step, or ``most`` if that is less, of all elements of a grid.

        Returns:
            Shape ``(rows, elements of a row)``, or one row that holds for all.
        """
        first_row, first_column = int(axes.first_rows[number]), int(axes.first_columns[number])
        start = number * _WIDTH + 2 * MAX_CLASS
        rows = self.rows[first_row : first_row + int(axes.rows[number])] - np.int32(start)
        columns = self.columns[first_column : first_column + int(axes.columns[number])]
        least, largest = int(rows.min()), int(rows.max())
        if least == largest:
            own = self.zones[start + least + columns] * np.float32(step)
            return np.repeat(np.minimum(own, np.float32(most)), axes.depths[number])[None]
        # Few rows differ, so each kind is looked up once.
        classes = np.arange(largest + 1)
        classes[0] = _NOTHING
        kinds = self.zones[start + classes[:, None] + columns] * np.float32(step)
        np.minimum(kinds, np.float32(most), out=kinds)
        limits: Floats = np.repeat(kinds, axes.depths[number], axis=1)[np.maximum(rows, 0)]
        return limits
