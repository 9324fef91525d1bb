"""Where classes would put values further off than their bits are worth.

The dead zone of a sparse group is wide (:mod:`compression.classes`), for a value there must be
large to earn its bits. Where values were kept for another reason, as for a floor or a fixed
density, they may lie far below it: they would arrive at its edge, many times too large.
"""

from __future__ import annotations

import numpy as np

from compression.bits import Ints
from compression.entropy import ENERGY_PER_BIT, entropy
from compression.placement import Placement
from compression.quantise import DEAD_ZONE_UNIT, OFFSET_UNIT, Floats, cells_of, offsets_of


def too_far_off(
    placement: Placement, sizes: Ints, counts: Ints, dead_zones: Ints, distances: Floats
) -> list[int]:
    """Units whose classes cost more error than the bits they save are worth.

    Where a coarse step makes bits worth a lot, classes may still not lose more than half of what
    sending the unit gains.

    Args:
        placement: with the classes.
        sizes: elements of each unit.
        counts: kept values of each unit.
        dead_zones: of each unit in 1/64, of its densest group if it has classes.
        distances: how far each kept value lies from 0, in steps.
    """
    found: list[int] = []
    if not placement.flags.any():
        return found
    starts, units = np.cumsum(counts) - counts, np.arange(len(counts))
    all_zones = placement.zones(dead_zones, counts)
    short = np.repeat(units, counts)[all_zones > distances * DEAD_ZONE_UNIT]
    subsets = placement.subsets
    grouped = np.bincount(
        np.repeat(units, placement.groups),
        entropy(subsets.counts, subsets.universes),
        minlength=len(counts),
    )
    saved = entropy(counts, sizes) - grouped
    for unit in np.unique(short).tolist():
        if not placement.flags[unit]:
            continue
        kept = slice(starts[unit], starts[unit] + counts[unit])
        own, zones = distances[kept], all_zones[kept]
        with_, without = _error(own, zones), _error(own, np.full(len(own), dead_zones[unit]))
        energy = float((own.astype(np.float64) ** 2).sum())
        worth = ENERGY_PER_BIT * float(saved[unit])
        if with_ > min(without + worth, (without + energy) / 2):
            found.append(unit)
    return found


def _error(distances: Floats, zones: Ints) -> float:
    """Squared error of values under these dead zones, in squares of the step."""
    none = np.zeros(len(distances), np.bool_)
    cells, places = cells_of(distances, zones, distances, none, 1.0)
    unit = np.zeros(len(distances), np.int64)
    offset = offsets_of(cells, places, unit, none[:1])[0] / OFFSET_UNIT
    return float(((places - np.where(cells == 0, offset, 0.5)) ** 2).sum())
