"""Which units are better coded from a zero point than with signs."""

from __future__ import annotations

import numpy as np

from compression.bits import Bools, Ints
from compression.entropy import ENERGY_PER_BIT, entropy
from compression.nested import LEVELS
from compression.quantise import MAX_CELL, Floats, cells_of, offsets_of, zero_points

_LEAST_KEPT = 64
_SKEWED = 0.15  # share of the rarer sign above which signs earn their bits
_ROW_BITS = 24  # what the zero point takes more than a dead zone


def affine_units(kept: Floats, counts: Ints, zones: Ints, step: float) -> Bools:
    """Units whose values are skewed so much that a zero point lowers the error for the bits.

    Both ways are weighed as bits plus squared error over what a bit is worth.

    Args:
        kept: values, unit by unit.
        counts: values of each unit.
        zones: dead zone of each value in 1/64.
        step: of the quantiser.
    """
    unit = np.repeat(np.arange(len(counts)), counts)
    negative = np.bincount(unit[np.signbit(kept)], minlength=len(counts))
    rarer = np.minimum(negative, counts - negative)
    tried: Bools = (counts >= _LEAST_KEPT) & (rarer <= _SKEWED * counts)
    if not tried.any():
        return tried
    chosen = np.zeros(len(counts), np.bool_)
    starts = np.cumsum(counts) - counts
    for number in np.flatnonzero(tried).tolist():
        own = slice(int(starts[number]), int(starts[number] + counts[number]))
        if np.ptp(kept[own].astype(np.float64)) > MAX_CELL * step:
            continue  # what lies beyond the last cell would come back with another sign
        costs = [_cost(kept[own], zones[own], step, affine=affine) for affine in (False, True)]
        chosen[number] = costs[1] + _ROW_BITS < costs[0]
    return chosen


def _cost(part: Floats, zones: Ints, step: float, *, affine: bool) -> float:
    unit = np.zeros(len(part), np.int64)
    mode = np.array([affine])
    point = zero_points(part, np.array([len(part)]), mode)
    cells, places = cells_of(part, zones, point[unit], mode[unit], step)
    middle = np.where((cells == 0) | affine, offsets_of(cells, places, unit, mode) / 256, 0.5)
    error = float(((places - middle) ** 2).sum())
    return _bits(cells) + (0 if affine else len(part)) + error / ENERGY_PER_BIT


def _bits(cells: Ints) -> float:
    """Bits of cells in planes (:mod:`compression.nested`), by the entropy of each plane."""
    members = np.bincount(np.minimum(cells, LEVELS), minlength=LEVELS + 1)
    at_least = np.cumsum(members[::-1])[::-1]
    planes = float(entropy(at_least[1:], at_least[:-1]).sum())
    return planes + int(at_least[-1]) * int(max(int(cells.max()) - LEVELS, 0)).bit_length()
