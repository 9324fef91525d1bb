"""Reading the body of a sparse packet. The input is hostile.

Arrays that grow with the layout are as narrow as they can be: what is coded of subsets in 32 bits,
the planes of values in 8. :mod:`compression.restore` makes values of them piece by piece.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression.bit_string import BitString, by_planes
from compression.bits import Ints, bit_length
from compression.classes import COLUMNS, ROWS, Classes, Grid
from compression.nested import plane_counts
from compression.packet import refusal
from compression.placement import allowed
from compression.reader import Reader
from compression.segments import Segments
from compression.sparse import positions_checksum
from compression.subsets_read import Places, coded_of, depths, read
from compression.table import Row, in_planes, read_joined, read_row
from compression.units import Units

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Parsed:
    """A sparse body as it travels, unit by unit and within a unit group by group.

    Attributes:
        step: of the quantiser.
        units: what is coded together.
        rows: of the table.
        maps: classes and gains of rows and columns, by unit and flag.
        classes: by unit that has them.
        groups: kept values of each group; one group for a unit without classes.
        bits: where the signs stand.
        signs: place of the first.
        depths: the deepest plane of each kept value.
        tails: cells beyond the last plane, of the values in it.
        coded: positions that are coded of each unit; None where both ends know them.
    """

    step: float
    units: Units
    rows: list[Row]
    maps: Mapping[tuple[int, int], Bytes]
    classes: Mapping[int, Classes]
    groups: list[Ints]
    bits: BitString
    signs: int
    depths: Bytes
    tails: NDArray[np.int32]
    coded: list[Places] | None

    def universes(self, unit: int) -> Ints:
        """Elements of each group of a unit."""
        found = self.classes.get(unit)
        return self.units.sizes[unit : unit + 1] if found is None else found.universes


def parse(reader: Reader, segments: Segments, shared: Ints | None) -> Parsed:
    """Read a sparse body to its end.

    Args:
        reader: at its first byte.
        segments: the covered layers.
        shared: positions that both ends know, as ascending flat indices; None if they travel.

    Raises:
        PacketError: it is not such a body, or was written over other shared positions.
    """
    step = reader.step()
    if shared is not None and (stated := reader.word()) != positions_checksum(shared):
        raise refusal(
            f"shared positions with checksum {positions_checksum(shared):08x}",
            f"{stated:08x}",
            "both ends must derive the same mask; compare its round and seed",
        )
    units = Units.of(segments, read_joined(reader, len(segments.parameters)))
    known = None if shared is None else _counts_in(shared, units)
    rows = [
        read_row(reader, units, u, None if known is None else known[u]) for u in range(len(units))
    ]
    maps = _maps(reader, rows)
    classes = {
        u: _classes(units, u, maps) for u, row in enumerate(rows) if row.flags & (ROWS | COLUMNS)
    }
    groups = [_group_counts(reader, row, classes.get(u)) for u, row in enumerate(rows)]
    signs = sum(row.kept for row in rows if not row.affine)
    if signs > 8 * reader.left:
        raise refusal(f"at most {8 * reader.left} signs in so few bytes", str(signs))
    bits = BitString(reader.rest())
    first_sign = bits.skip(signs)
    tails = _tails(bits, rows)
    universes = [
        classes[u].universes if u in classes else units.sizes[u : u + 1] for u in range(len(units))
    ]
    subsets = (groups, universes) if shared is None else ([], [])
    chosen, outer = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in subsets)
    levels = in_planes([[row.kept, *row.levels] for row in rows])
    inner_planes, outer_planes = plane_counts(levels)
    coded = read(
        bits, np.concatenate([chosen, inner_planes]), np.concatenate([outer, outer_planes])
    )
    first = int(coded_of(chosen, outer).sum())
    by_unit = None
    if shared is None:
        sizes = [int(coded_of(*pair).sum()) for pair in zip(groups, universes, strict=True)]
        by_unit = np.split(coded[:first], np.cumsum(sizes)[:-1])
    return Parsed(
        step=step,
        units=units,
        rows=rows,
        maps=maps,
        classes=classes,
        groups=groups,
        bits=bits,
        signs=first_sign,
        depths=depths(levels, coded[first:]),
        tails=tails,
        coded=by_unit,
    )


def _counts_in(shared: Ints, units: Units) -> list[int]:
    ends = np.searchsorted(shared, units.starts + units.sizes)
    counts: list[int] = (ends - np.searchsorted(shared, units.starts)).tolist()
    return counts


def _maps(reader: Reader, rows: list[Row]) -> dict[tuple[int, int], Bytes]:
    """Class arrays and row gains, by unit and flag."""
    keys = [(u, flag) for u, row in enumerate(rows) for flag in row.map_levels]
    if not keys:
        return {}
    levels = in_planes([rows[u].map_levels[flag] for u, flag in keys])
    content = BitString(reader.take(reader.varint(reader.left)))
    values = depths(levels, read(content, *plane_counts(levels)))
    return dict(zip(keys, np.split(values, np.cumsum(levels[0])[:-1]), strict=True))


def _classes(units: Units, unit: int, maps: Mapping[tuple[int, int], Bytes]) -> Classes:
    tensor = units.tensors[unit]
    assert tensor is not None  # read_row let flags of such units alone pass
    grid = Grid.of(tensor.shape)
    classes = Classes(
        grid,
        maps.get((unit, ROWS), np.ones(grid.rows, np.uint8)),
        maps.get((unit, COLUMNS), np.ones(grid.columns, np.uint8)),
    )
    if not allowed(classes):
        raise refusal("fewer classes for a tensor of this shape", str(len(classes.universes)))
    return classes


def _group_counts(reader: Reader, row: Row, classes: Classes | None) -> Ints:
    """Kept values of each group; one group for a unit without classes."""
    if classes is None:
        return np.array([row.kept], np.int64)
    counts = np.zeros(len(classes.universes), np.int64)
    filled = np.flatnonzero(classes.universes).tolist()
    left = row.kept
    for group in filled[:-1]:
        counts[group] = reader.varint(min(left, int(classes.universes[group])))
        left -= int(counts[group])
    last = filled[-1] if filled else 0
    if left > classes.universes[last]:
        raise refusal(f"at most {classes.universes[last]} values in the last group", str(left))
    counts[last] = left
    return counts


def _tails(bits: BitString, rows: list[Row]) -> NDArray[np.int32]:
    """The numbers of the cells beyond the last plane."""
    counts = np.array([row.tails for row in rows], np.int64)
    widths = np.array([row.tail_width for row in rows], np.int64)
    pieces = by_planes(bits, counts, widths)  # refuses too few bits before memory is taken
    tails = np.empty(int(counts.sum()), np.int32)
    largest = np.zeros(len(rows), np.int64)
    for start, stop, owner, numbers in pieces:
        tails[start:stop] = numbers
        np.maximum.at(largest, owner, numbers)
    if (bit_length(largest) != widths).any():
        raise refusal("the smallest tail width", "a larger one")
    return tails
