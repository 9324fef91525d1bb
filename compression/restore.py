"""Values of a sparse body, from cells and positions (:mod:`compression.quantise` has the rules).

Piece by piece, so that 64-bit intermediates do not grow with the layout. Values of one group and
one plane are alike but for their sign, so they are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compression.bit_string import owners
from compression.bits import Bools, Ints
from compression.classes import zones_of
from compression.nested import LEVELS
from compression.parse import Parsed
from compression.quantise import DEAD_ZONE_UNIT, LARGEST_FLOAT, OFFSET_UNIT, Floats
from compression.sparse import ROW_GAINS
from compression.subsets_read import Places, coded_of, members

_DEPTHS = LEVELS + 1
_PIECE = 1 << 15  # values worked on at once: a dozen arrays of 64 bits


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
    levels = _Levels.of(body)
    divided = any(row.flags & ROW_GAINS for row in body.rows)
    table: NDArray[np.floating] = levels.values(
        np.arange(_DEPTHS), np.arange(len(body.counts))[:, None, None], np.array([[False], [True]])
    ).reshape(-1)
    table = table if divided else _float32(table)
    at, first_sign, first_tail = 0, body.signs, 0
    for places, group in _batches(body, shared):
        stop = at + len(places)
        depth = body.depths[at:stop]
        signs = np.zeros(len(places), np.uint8)
        signed = slice(None) if levels.all_signed else np.flatnonzero(levels.signed[group])
        count = len(signs[signed])
        signs[signed] = body.bits.bits(first_sign, count)
        first_sign += count
        keys = 2 * group
        keys += signs
        keys *= _DEPTHS
        keys += depth
        found = table[keys]
        deepest = np.flatnonzero(depth == LEVELS)
        if len(deepest):
            tails = body.tails[first_tail : first_tail + len(deepest)].astype(np.int64)
            first_tail += len(deepest)
            exact = levels.values(LEVELS + tails, group[deepest], signs[deepest] > 0)
            found[deepest] = exact if divided else _float32(exact)
        if divided:
            _divide_by_row_gains(found, body, levels.unit[group], places)
            found = _float32(found)
        values[places] = found
        at = stop
    return values


def _float32(exact: NDArray[np.floating]) -> Floats:
    """The nearest values, of those beyond float32 its largest."""
    found: Floats = np.clip(exact, -LARGEST_FLOAT, LARGEST_FLOAT).astype(np.float32)
    return found


@dataclass(frozen=True)
class _Levels:
    """What the values of a group have in common, by group.

    Attributes:
        step: of the quantiser.
        zones: dead zones in 1/64.
        offsets: in 1/256.
        signed: whether values have signs, rather than a zero point.
        zero_points: 0 where there is none.
        gains: of the whole unit.
        unit: of the group.
    """

    step: float
    zones: Ints
    offsets: Ints
    signed: Bools
    zero_points: NDArray[np.float64]
    gains: NDArray[np.int32]
    unit: Ints

    @classmethod
    def of(cls, body: Parsed) -> _Levels:
        rows, classes = body.rows, body.classes
        densest = np.array([row.dead_zone for row in rows], np.int64)
        zones = zones_of(classes.universes, body.counts, classes.first_groups, densest)
        unit = classes.grid_of_group
        signed = np.array([not row.affine for row in rows], np.bool_)[unit]
        return cls(
            step=body.step,
            zones=np.where(signed, zones, 0),
            offsets=np.array([row.offset for row in rows], np.int64)[unit],
            signed=signed,
            zero_points=np.array([row.zero_point for row in rows], np.float64)[unit],
            gains=np.array([row.gain for row in rows], np.int32)[unit],
            unit=unit,
        )

    @property
    def all_signed(self) -> bool:
        """Whether no unit has a zero point."""
        return bool(self.signed.all())

    def values(self, cells: Ints, group: Ints, negative: Bools) -> NDArray[np.float64]:
        """What cells stand for, before the gains of rows are taken away."""
        offset = (self.offsets / OFFSET_UNIT)[group]
        middle = np.where((cells == 0) | ~self.signed[group], offset, 0.5)
        sizes = ((self.zones / DEAD_ZONE_UNIT)[group] + (middle + cells)) * self.step
        found: NDArray[np.float64] = np.where(negative, -sizes, sizes) + self.zero_points[group]
        if not self.gains.any():
            return found
        scaled: NDArray[np.float64] = np.ldexp(found, -self.gains[group])
        return scaled


def _divide_by_row_gains(
    found: NDArray[np.floating], body: Parsed, unit: Ints, places: Ints
) -> None:
    """In place, for values in the order of travel, at ``places`` of the flat vector."""
    for number, row in enumerate(body.rows):
        if not row.flags & ROW_GAINS:
            continue
        gains = body.maps[number, ROW_GAINS]
        first, last = np.searchsorted(unit, [number, number + 1]).tolist()
        within = places[first:last] - int(body.units.starts[number])
        gain = gains[within // (int(body.units.sizes[number]) // len(gains))]
        found[first:last] = np.ldexp(found[first:last], -gain.astype(np.int32))


def _batches(body: Parsed, shared: Ints | None) -> Iterator[tuple[Ints, Ints]]:
    """Where in the flat vector kept values lie, in the order of travel, and the group of each."""
    ends = np.cumsum(body.counts)
    if body.coded is None:
        assert shared is not None  # the parser was given the same
        for at in range(0, len(shared), _PIECE):
            places = shared[at : at + _PIECE]
            yield places, owners(ends, at, at + len(places))
        return
    classes, starts = body.classes, body.units.starts
    begins = np.cumsum(classes.universes) - classes.universes
    unclassed = starts - begins[classes.first_groups]
    at = 0
    for places in _in_pieces(_chosen(body.coded, body.counts, classes.universes)):
        group = owners(ends, at, at + len(places))
        unit = classes.grid_of_group[group]
        if classes.axes.several[unit].any():
            yield classes.positions(places, group) + starts[unit], group
        else:
            yield places + unclassed[unit], group
        at += len(places)


def _in_pieces(parts: Iterator[Ints]) -> Iterator[Ints]:
    """Small parts together, as far as a piece reaches."""
    held: list[Ints] = []
    length = 0
    for part in parts:
        if held and length + len(part) > _PIECE:
            yield np.concatenate(held)
            held, length = [], 0
        held.append(part)
        length += len(part)
    if length:
        yield np.concatenate(held)


def _chosen(coded: Places, chosen: Ints, universes: Ints) -> Iterator[Ints]:
    """Members of subsets as places in all universes one behind another, ascending."""
    flipped = 2 * chosen > universes
    begins, ends = np.cumsum(universes) - universes, np.cumsum(coded_of(chosen, universes))
    turns = (np.flatnonzero(np.diff(flipped)) + 1).tolist()
    for first, last in pairwise([0, *turns, len(chosen)] if len(chosen) else []):
        own = slice(first, last)
        start, stop = int(ends[first - 1]) if first else 0, int(ends[last - 1])
        if flipped[first]:
            marked = members(coded[start:stop], chosen[own], universes[own])
            for at in range(0, len(marked), _PIECE):
                yield np.flatnonzero(marked[at : at + _PIECE]) + (at + begins[first])
            continue
        for at in range(start, stop, _PIECE):
            part = coded[at : min(at + _PIECE, stop)]
            yield part + begins[owners(ends, at, at + len(part))]
