"""Values of a sparse body, from cells and positions (:mod:`compression.quantise` has the rules).

Piece by piece, so that 64-bit intermediates do not grow with the layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compression.bit_string import PIECE, owners
from compression.bits import Ints
from compression.nested import LEVELS
from compression.parse import Parsed
from compression.quantise import DEAD_ZONE_UNIT, LARGEST_FLOAT, OFFSET_UNIT, Floats
from compression.sparse import ROW_GAINS
from compression.subsets_read import Places, coded_of, members
from compression.table import Row


def restore(body: Parsed, shared: Ints | None, into: Floats | None = None) -> Floats:
    """The flat vector of all parameters, always finite; 0 where nothing was kept.

    Args:
        body: what was read.
        shared: positions that both ends know, as ascending flat indices.
        into: memory of that length, overwritten; None to take new.
    """
    size = int(body.units.sizes.sum())
    if into is None or len(into) != size:
        values = np.zeros(size, np.float32)
    else:
        values = into
        values.fill(0)
    first, first_sign, first_tail = 0, body.signs, 0
    for unit, row in enumerate(body.rows):
        if not row.kept:
            continue
        start = int(body.units.starts[unit])
        own = values[start : start + int(body.units.sizes[unit])]
        zones, ends = _zones(body, unit)
        at = 0
        for places in _places(body, unit, first, shared):
            stop = at + len(places)
            depth = body.depths[first + at : first + stop]
            cells = depth.astype(np.int64)
            deepest = np.flatnonzero(depth == LEVELS)
            cells[deepest] += body.tails[first_tail : first_tail + len(deepest)]
            first_tail += len(deepest)
            zone = zones[owners(ends, at, stop)] if len(zones) > 1 else zones
            scaled = _scaled(row, cells, zone, body.step)
            if not row.affine:
                negative = body.bits.bits(first_sign, len(places)).astype(np.bool_)
                first_sign += len(places)
                scaled = np.where(negative, -scaled, scaled)
            own[places] = _without_gain(scaled + row.zero_point, row, body, unit, places)
            at = stop
        first += row.kept
    return values


def _scaled(row: Row, cells: Ints, zone: Ints, step: float) -> NDArray[np.float64]:
    """How far values lie from 0, or from the zero point."""
    offset = row.offset / OFFSET_UNIT
    inside = np.full(len(cells), offset) if row.affine else np.where(cells == 0, offset, 0.5)
    scaled: NDArray[np.float64] = (zone / DEAD_ZONE_UNIT + (inside + cells)) * step
    return scaled


def _without_gain(
    scaled: NDArray[np.float64], row: Row, body: Parsed, unit: int, places: Ints
) -> Floats:
    gains = body.maps[unit, ROW_GAINS] if row.flags & ROW_GAINS else None
    if gains is not None:
        gain = gains[places // (int(body.units.sizes[unit]) // len(gains))]
        scaled = np.ldexp(scaled, -gain.astype(np.int32))
    elif row.gain:
        scaled = np.ldexp(scaled, -row.gain)
    restored: Floats = np.clip(scaled, -LARGEST_FLOAT, LARGEST_FLOAT).astype(np.float32)
    return restored


def _zones(body: Parsed, unit: int) -> tuple[Ints, Ints]:
    """Dead zones of a unit's groups in 1/64, and where each group's values end."""
    row, counts = body.rows[unit], body.groups[unit]
    found = body.classes.get(unit)
    zones = np.array([row.dead_zone], np.int64)
    if found is not None and not row.affine:
        zones = found.zones(counts, row.dead_zone)
    return zones, np.cumsum(counts)


def _places(body: Parsed, unit: int, first: int, shared: Ints | None) -> Iterator[Ints]:
    """The unit's kept positions within it, in the order of their values, piece by piece."""
    kept = body.rows[unit].kept
    if body.coded is None:
        assert shared is not None  # the parser was given the same
        for at in range(first, first + kept, PIECE):
            yield shared[at : min(at + PIECE, first + kept)] - body.units.starts[unit]
        return
    found = body.classes.get(unit)
    for flat in _chosen(body.coded[unit], body.groups[unit], body.universes(unit)):
        yield flat if found is None else found.positions(flat)


def _chosen(coded: Places, chosen: Ints, universes: Ints) -> Iterator[Ints]:
    """Members of subsets as places in all universes one behind another, ascending."""
    flipped = 2 * chosen > universes
    begins, ends = np.cumsum(universes) - universes, np.cumsum(coded_of(chosen, universes))
    turns = (np.flatnonzero(np.diff(flipped)) + 1).tolist()
    for first, last in pairwise([0, *turns, len(chosen)]):
        own = slice(first, last)
        start, stop = int(ends[first - 1]) if first else 0, int(ends[last - 1])
        if flipped[first]:
            marked = members(coded[start:stop], chosen[own], universes[own])
            for at in range(0, len(marked), PIECE):
                yield np.flatnonzero(marked[at : at + PIECE]) + (at + begins[first])
            continue
        for at in range(start, stop, PIECE):
            part = coded[at : min(at + PIECE, stop)]
            yield part + begins[owners(ends, at, at + len(part))]
