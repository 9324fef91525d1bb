"""Nested subsets: which values are kept, which of those lie in cell 1 or above, in 2 or above, ...

Each plane is a subset of the one before, so plain subset codes carry the magnitudes below their
order-0 entropy: every layer has its own density in every plane. Cells from ``LEVELS`` on are rare
and go as numbers of a fixed width a layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from compression import golomb
from compression.bits import BitReader, Bools, Ints, bit_length
from compression.golomb import Subsets

LEVELS = 16
MAX_TAIL_BITS = 20  # cells reach quantise.MAX_CELL, so tails stay below 2^20


@dataclass(frozen=True)
class Nested:
    """Kept values as nested subsets.

    Attributes:
        levels: for each plane the members in each layer; plane 0 counts the kept values.
        subsets: of all planes and layers, plane by plane.
        tails: ``cell - LEVELS`` of the values in the last plane.
        tail_widths: bits of a tail in each layer.
    """

    levels: list[Ints]
    subsets: Subsets
    tails: Ints
    tail_widths: Ints


def nest(counts: Ints, cells: Ints, positions: Ints | None, sizes: Ints) -> Nested:
    """Split kept values into planes.

    Args:
        counts: kept values of each layer.
        cells: of each kept value.
        positions: of each kept value within its layer; None where both ends know them.
        sizes: parameters of each layer.
    """
    layer = np.repeat(np.arange(len(counts)), counts)
    levels, parts = [counts], []
    if positions is not None:
        parts.append(_whole_layers(positions, counts, sizes))
    while levels[-1].any() and len(levels) <= LEVELS:
        inside = cells >= len(levels)
        universe, members = levels[-1], np.bincount(layer[inside], minlength=len(counts))
        coded = inside ^ _flipped(members, universe)[layer]
        starts = np.cumsum(universe) - universe
        coded_positions = np.flatnonzero(coded) - starts[layer[coded]]
        parts.append(Subsets(coded_positions, _coded(members, universe), universe))
        levels.append(members)
        cells, layer = cells[inside], layer[inside]
    tails = cells - LEVELS
    largest = np.zeros(len(counts), np.int64)
    np.maximum.at(largest, layer, tails)
    return Nested(levels, _joined(parts), tails, bit_length(largest))


def unnest(
    reader: BitReader, levels: list[Ints], tails: Ints, sizes: Ints, *, has_positions: bool
) -> tuple[Ints, list[Ints]]:
    """The inverse of :func:`nest`: cells, and the positions kept in each layer.

    Raises:
        PacketError: the bits are not such planes.
    """
    universes = ([sizes] if has_positions else []) + levels[:-1]
    members = levels if has_positions else levels[1:]
    coded = [_coded(m, u) for m, u in zip(members, universes, strict=True)]
    joined = _joined([Subsets(_NONE, c, u) for c, u in zip(coded, universes, strict=True)])
    flat = golomb.read(reader, joined.counts, joined.universes)
    planes = np.split(flat, np.cumsum([int(c.sum()) for c in coded]))
    positions: list[Ints] = []
    if has_positions:
        of_layers = np.split(planes.pop(0), np.cumsum(coded[0])[:-1])
        for chosen, count, size in zip(of_layers, levels[0], sizes, strict=True):
            positions.append(_complement(chosen, size) if 2 * count > size else chosen)
        coded = coded[1:]
    cells = np.zeros(int(levels[0].sum()), np.int64)
    current = np.arange(len(cells))
    for plane, (universe, inner) in enumerate(pairwise(levels)):
        starts = np.cumsum(universe) - universe
        inside = np.zeros(len(current), np.bool_)
        inside[planes[plane] + np.repeat(starts, coded[plane])] = True
        inside ^= np.repeat(_flipped(inner, universe), universe)
        current = current[inside]
        cells[current] = plane + 1
    if len(levels) > LEVELS:
        cells[current] += tails
    return cells, positions


_NONE = np.zeros(0, np.int64)


def _flipped(members: Ints, universe: Ints) -> Bools:
    """Where more than half are members, the others are coded: they are fewer."""
    flipped: Bools = 2 * members > universe
    return flipped


def _coded(members: Ints, universe: Ints) -> Ints:
    coded: Ints = np.minimum(members, universe - members)
    return coded


def _complement(positions: Ints, size: int) -> Ints:
    absent = np.ones(size, np.bool_)
    absent[positions] = False
    return np.flatnonzero(absent)


def _whole_layers(positions: Ints, counts: Ints, sizes: Ints) -> Subsets:
    flipped = _flipped(counts, sizes)
    if flipped.any():
        of_layers = np.split(positions, np.cumsum(counts)[:-1])
        positions = np.concatenate(
            [
                _complement(kept, size) if flip else kept
                for kept, size, flip in zip(of_layers, sizes, flipped, strict=True)
            ]
        )
    return Subsets(positions, _coded(counts, sizes), sizes)


def _joined(parts: list[Subsets]) -> Subsets:
    return Subsets(
        np.concatenate([_NONE, *(part.positions for part in parts)]),
        np.concatenate([_NONE, *(part.counts for part in parts)]),
        np.concatenate([_NONE, *(part.universes for part in parts)]),
    )
