"""The values that may be sent, and where they lie.

A search looks at thresholds again and again; most values lie below all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compression.axes import Axes, Places
from compression.bits import Ints, Whole
from compression.segments import Floats
from compression.zones import Zones


@dataclass(frozen=True)
class Candidates:
    """Values that are large enough for their zones.

    Attributes:
        indices: in the flat vector, ascending.
        magnitudes: of each value.
        columns: of each value, on all tensors' axes.
        in_rows: how many there are in each row.
        row_ends: the sums of those up to each row.
    """

    indices: Whole
    magnitudes: Floats
    columns: Places
    in_rows: Ints
    row_ends: Ints

    @classmethod
    def above(
        cls, magnitudes: Floats, axes: Axes, zones: Zones, step: float, floors: Floats
    ) -> Candidates:
        """Find those of at least ``step`` times their zone, or of their tensor's floor.

        Args:
            magnitudes: the flat vector of all tensors.
            axes: of the tensors.
            zones: of all values.
            step: what multiplies them.
            floors: of each tensor; infinite where it has none.
        """
        # Half the width is twice the speed, and few models need more.
        width = np.int64 if len(magnitudes) >= 2**31 else np.int32
        indices: list[Whole] = []
        columns: list[Places] = []
        large: list[Floats] = []
        start = 0
        for number, size in enumerate(axes.sizes[: axes.large].tolist()):
            part = magnitudes[start : start + size]
            limits = zones.limits(axes, number, step, floors[number])
            inside = np.flatnonzero(part.reshape(size // limits.shape[1], -1) >= limits)
            large.append(part[inside])  # while they are in the cache
            columns.append(_columns(axes, number, inside))
            indices.append((inside + start).astype(width))
            start += size
        # The others are small and many: all of them at once.
        part = magnitudes[start:]
        all_in_rows, all_columns = axes.rest
        own = zones.of_values(all_in_rows, all_columns) * np.float32(step)
        np.minimum(own, np.repeat(floors[axes.large :], axes.sizes[axes.large :]), out=own)
        inside = np.flatnonzero(part >= own)
        large.append(part[inside])
        columns.append(all_columns[inside])
        indices.append((inside + start).astype(width))
        ascending = np.concatenate(indices)
        in_rows = axes.in_rows(ascending)
        return cls(
            indices=ascending,
            magnitudes=np.concatenate(large),
            columns=np.concatenate(columns),
            in_rows=in_rows,
            row_ends=np.cumsum(in_rows),
        )


def _columns(axes: Axes, number: int, positions: Ints) -> Places:
    """The columns of positions in a grid, numbered through."""
    depth = int(axes.depths[number])
    width = int(axes.columns[number]) * depth
    wide = int(axes.sizes[number]) > 2**32
    found: Whole = positions.astype(np.uint64 if wide else np.uint32)
    found -= found // width * width
    if depth > 1:
        found //= depth
    found += int(axes.first_columns[number])
    return found.astype(np.int32)
