"""Which units are better coded from a zero point than with signs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compression.bits import Bools, Ints
from compression.entropy import ENERGY_PER_BIT, entropy
from compression.nested import LEVELS
from compression.quantise import DEAD_ZONE_UNIT, MAX_CELL, OFFSET_UNIT, Floats

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
        part = kept[own].astype(np.float64)
        signed = _cost(np.abs(part) / step - zones[own] / DEAD_ZONE_UNIT, affine=False)
        skewed = _cost((part - part.min()) / step, affine=True)
        chosen[number] = skewed + _ROW_BITS < signed
    return chosen


def _cost(distances: NDArray[np.float64], *, affine: bool) -> float:
    """Of values so many steps beyond the dead zone or the zero point (:mod:`compression.quantise`).

    Written out for one unit, of which there may be dozens, each tried in every body.
    """
    cells = np.clip(np.floor(distances), 0, MAX_CELL)
    off = distances - cells
    at_offset = slice(None) if affine else cells == 0
    if len(first := off[at_offset]):
        offset = min(max(round(float(first.mean()) * OFFSET_UNIT), 0), OFFSET_UNIT - 1)
        off[at_offset] += 0.5 - offset / OFFSET_UNIT
    off -= 0.5
    return (
        _bits(cells.astype(np.int64)) + len(off) * (not affine) + float(off @ off) / ENERGY_PER_BIT
    )


def _bits(cells: Ints) -> float:
    """Bits of cells in planes (:mod:`compression.nested`), by the entropy of each plane."""
    members = np.bincount(np.minimum(cells, LEVELS), minlength=LEVELS + 1)
    at_least = np.cumsum(members[::-1])[::-1]
    planes = float(entropy(at_least[1:], at_least[:-1]).sum())
    return planes + int(at_least[-1]) * int(max(int(cells.max()) - LEVELS, 0)).bit_length()
