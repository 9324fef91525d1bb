"""The quantiser: one step for all units, a dead zone of its own for each unit.

With step Δ and dead zone θ, a value v is kept where ``|v| >= θΔ`` and lies in cell
``m = floor(|v|/Δ - θ)``. Cells m >= 1 are restored at their middle, ``(θ + m + 1/2)Δ``; cell 0 at
``(θ + o)Δ``, where the unit sends o, because values crowd towards the threshold there.

An affine unit has no signs. It sends its smallest kept value z, cells are ``m = floor((v - z)/Δ)``,
and all of them are restored at ``z + (m + o)Δ``. That is cheaper where nearly all values have the
same sign.

A gain g multiplies the values of a unit, or of one row of it, by ``2**g`` before all this and
divides them after: their step is finer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression.units import Units

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SMALLEST_STEP = float(np.finfo(np.float32).smallest_normal)
LARGEST_FLOAT = float(np.finfo(np.float32).max)
DEAD_ZONE_UNIT = 64  # dead zones are sent in 1/64 of the step
OFFSET_UNIT = 256  # offsets in 1/256
MAX_DEAD_ZONE = 2**24
MAX_CELL = 2**20  # error feedback carries what lies beyond
MAX_GAIN = 7


@dataclass(frozen=True)
class Quantised:
    """Kept values, unit by unit, as the packet carries them.

    Attributes:
        step: Δ, a float32 value.
        units: what is coded together.
        counts: kept values of each unit.
        dead_zones: θ of each unit in 1/64; of its densest group if it has classes.
        offsets: o of each unit in 1/256.
        affine: whether each unit has a zero point in place of signs.
        zero_points: z of each unit; 0 where it is not affine.
        gains: by unit that has them, one for the whole unit or one for each of its rows.
        indices: of the kept values in the flat vector.
        negative: whether each kept value is below 0; False in affine units.
        cells: m of each kept value.
        zones: θ of each kept value in 1/64; 0 in affine units.
    """

    step: float
    units: Units
    counts: Ints
    dead_zones: Ints
    offsets: Ints
    affine: Bools
    zero_points: Floats
    gains: Mapping[int, Ints]
    indices: Ints
    negative: Bools
    cells: Ints
    zones: Ints

    @property
    def unit_of(self) -> Ints:
        """The unit of each kept value."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


def zero_points(kept: Floats, counts: Ints, affine: Bools) -> Floats:
    """The smallest kept value of each affine unit; 0 for the others."""
    smallest = np.zeros(len(counts), np.float32)
    filled = np.flatnonzero(counts)
    if affine.any():
        firsts = (np.cumsum(counts) - counts)[filled]
        smallest[filled] = np.minimum.reduceat(kept, firsts)
    return np.where(affine, smallest, np.float32(0))


def cells_of(
    kept: Floats, zones: Ints, points: Floats, affine: Bools, step: float
) -> tuple[Ints, NDArray[np.float64]]:
    """The cell of each kept value, and how far into it the value lies, from 0 to 1.

    Those inside the dead zone fall in cell 0, at a place below 0. All arguments but the last are
    by kept value.
    """
    distance = np.abs(kept) / np.float64(step)
    distance -= zones / DEAD_ZONE_UNIT
    if affine.any():
        above = (kept.astype(np.float64) - points) / step
        distance = np.where(affine, above, distance)
    cells = np.floor(distance)
    np.clip(cells, 0, MAX_CELL, out=cells)
    distance -= cells
    return cells.astype(np.int64), distance


def restored(quantised: Quantised) -> NDArray[np.float64]:
    """What arrives of kept values, before gains are taken away, in the order of ``indices``."""
    q, unit = quantised, quantised.unit_of
    middle = np.where((q.cells == 0) | q.affine[unit], (q.offsets / OFFSET_UNIT)[unit], 0.5)
    sizes = (q.zones / DEAD_ZONE_UNIT + (middle + q.cells)) * q.step
    found: NDArray[np.float64] = np.where(q.negative, -sizes, sizes) + q.zero_points[unit]
    return found


def offsets_of(cells: Ints, places: NDArray[np.float64], unit: Ints, affine: Bools) -> Ints:
    """The mean place of each unit's values in cell 0, of an affine unit in all cells, in 1/256."""
    counted = np.flatnonzero((cells == 0) | affine[unit] if affine.any() else cells == 0)
    sums = np.bincount(unit[counted], weights=places[counted], minlength=len(affine))
    numbers = np.bincount(unit[counted], minlength=len(affine))
    means = sums / np.maximum(numbers, 1)
    offsets: Ints = np.clip(np.rint(means * OFFSET_UNIT), 0, OFFSET_UNIT - 1).astype(np.int64)
    return offsets
