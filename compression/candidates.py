"""The values that may be sent, with the row and column of each.

A search looks at thresholds again and again; most values lie below all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression.classes import Grid
from compression.segments import Floats, Ints, Segments

Places = NDArray[np.int32]


@dataclass(frozen=True)
class Axes:
    """Rows and columns of all tensors, numbered through.

    A vector is one row and one column of its whole depth.

    Attributes:
        grids: of each tensor.
        rows, columns: how many each tensor has.
        depths: elements for each row and column.
        first_rows, first_columns: number of the first of each tensor.
        tensor_of_row, tensor_of_column: by number.
        first_vector: the tensor from which on all are vectors.
    """

    grids: tuple[Grid, ...]
    rows: Ints
    columns: Ints
    depths: Ints
    first_rows: Ints
    first_columns: Ints
    tensor_of_row: Ints
    tensor_of_column: Ints
    first_vector: int

    @classmethod
    def of(cls, segments: Segments) -> Axes:
        """The axes of the parameters in the flat vector."""
        grids = tuple(
            Grid.of(t.shape) if len(t.shape) > 1 and t.size else Grid(1, 1, t.size)
            for t in segments.parameters
        )
        rows = np.array([grid.rows for grid in grids], np.int64)
        columns = np.array([grid.columns for grid in grids], np.int64)
        return cls(
            grids=grids,
            rows=rows,
            columns=columns,
            depths=np.array([grid.depth for grid in grids], np.int64),
            first_rows=np.cumsum(rows) - rows,
            first_columns=np.cumsum(columns) - columns,
            tensor_of_row=np.repeat(np.arange(len(grids)), rows),
            tensor_of_column=np.repeat(np.arange(len(grids)), columns),
            first_vector=int(np.max(np.flatnonzero(rows * columns != 1), initial=-1)) + 1,
        )


@dataclass(frozen=True)
class Candidates:
    """Values at or above a limit for each row.

    Attributes:
        limits: the magnitude from which values are here, by row.
        indices: in the flat vector, ascending.
        magnitudes: of each value.
        counts: of each tensor.
        rows, columns: numbers of both on all tensors' axes.
    """

    limits: NDArray[np.float32]
    indices: Ints
    magnitudes: Floats
    counts: Ints
    rows: Places
    columns: Places

    @classmethod
    def above(
        cls, magnitudes: Floats, segments: Segments, axes: Axes, limits: NDArray[np.float32]
    ) -> Candidates:
        """Find them in the flat vector of all magnitudes."""
        empty = np.zeros(0, np.int32)
        indices: list[Ints] = [empty.astype(np.int64)]
        found: list[Floats] = [np.zeros(0, np.float32)]
        rows, columns = [empty], [empty]
        counts = np.zeros(len(axes.grids), np.int64)
        starts, sizes = segments.starts.tolist(), segments.sizes.tolist()
        for number, grid in enumerate(axes.grids[: axes.first_vector]):
            part = magnitudes[starts[number] : starts[number] + sizes[number]]
            first = int(axes.first_rows[number])
            of_rows = limits[first : first + grid.rows, None]
            inside = np.flatnonzero(part.reshape(grid.rows, -1) >= of_rows)
            counts[number] = len(inside)
            if not len(inside):
                continue
            found.append(part[inside])
            row, column = _split(grid, inside)
            row += np.int32(first)
            column += np.int32(axes.first_columns[number])
            rows.append(row)
            columns.append(column)
            inside += starts[number]
            indices.append(inside)
        if axes.first_vector < len(axes.grids):
            # Vectors are small and many: all of them at once.
            start, own = starts[axes.first_vector], segments.sizes[axes.first_vector :]
            part = magnitudes[start:]
            first = int(axes.first_rows[axes.first_vector])
            inside = np.flatnonzero(part >= np.repeat(limits[first:], own))
            ends = np.searchsorted(inside, np.cumsum(own))
            counts[axes.first_vector :] = members = np.diff(ends, prepend=0)
            numbers = np.repeat(np.arange(len(own), dtype=np.int32), members)
            indices.append(inside + start)
            found.append(part[inside])
            rows.append(numbers + np.int32(first))
            columns.append(numbers + np.int32(axes.first_columns[axes.first_vector]))
        return cls(
            limits=limits,
            indices=np.concatenate(indices),
            magnitudes=np.concatenate(found),
            counts=counts,
            rows=np.concatenate(rows),
            columns=np.concatenate(columns),
        )


def _split(grid: Grid, positions: Ints) -> tuple[Places, Places]:
    """Row and column of positions."""
    if grid.rows == 1 and grid.columns == 1:
        return np.zeros(len(positions), np.int32), np.zeros(len(positions), np.int32)
    if grid.rows * grid.columns * grid.depth >= 2**31:
        row, column, _ = grid.split(positions)
        return row.astype(np.int32), column.astype(np.int32)
    # Half the width is twice the speed.
    column = positions.astype(np.uint32)
    row = column // np.uint32(grid.columns * grid.depth)
    column -= row * np.uint32(grid.columns * grid.depth)
    if grid.depth > 1:
        column //= np.uint32(grid.depth)
    return row.view(np.int32), column.view(np.int32)
