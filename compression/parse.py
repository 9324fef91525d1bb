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
from compression.classes import COLUMNS, ROWS, Classes
from compression.nested import plane_counts
from compression.packet import refusal
from compression.placement import gridded
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
        classes: of all units; a unit without classes is one group.
        counts: kept values of each group.
        bits: where the signs stand.
        signs: place of the first.
        depths: the deepest plane of each kept value.
        tails: cells beyond the last plane, of the values in it.
        coded: positions that are coded of all groups; None where both ends know them.
    """

    step: float
    units: Units
    rows: list[Row]
    maps: Mapping[tuple[int, int], Bytes]
    classes: Classes
    counts: Ints
    bits: BitString
    signs: int
    depths: Bytes
    tails: NDArray[np.int32]
    coded: Places | None


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
    sizes = units.sizes.tolist()
    rows = [
        read_row(reader, tensor, size, None if known is None else known[u])
        for u, (tensor, size) in enumerate(zip(units.tensors, sizes, strict=True))
    ]
    maps = _maps(reader, rows)
    classes = _classes(units, rows, maps)
    counts = _group_counts(reader, rows, classes)
    signs = sum(row.kept for row in rows if not row.affine)
    if signs > 8 * reader.left:
        raise refusal(f"at most {8 * reader.left} signs in so few bytes", str(signs))
    bits = BitString(reader.rest())
    first_sign = bits.skip(signs)
    tails = _tails(bits, rows)
    chosen, outer = (counts, classes.universes) if shared is None else (counts[:0], counts[:0])
    levels = in_planes([[row.kept, *row.levels] for row in rows])
    inner_planes, outer_planes = plane_counts(levels)
    coded = read(
        bits, np.concatenate([chosen, inner_planes]), np.concatenate([outer, outer_planes])
    )
    first = int(coded_of(chosen, outer).sum())
    return Parsed(
        step=step,
        units=units,
        rows=rows,
        maps=maps,
        classes=classes,
        counts=counts,
        bits=bits,
        signs=first_sign,
        depths=depths(levels, coded[first:]),
        tails=tails,
        coded=coded[:first] if shared is None else None,
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
    ends = np.cumsum(levels[0]).tolist()
    return {
        key: values[first:last] for key, first, last in zip(keys, [0, *ends], ends, strict=False)
    }


def _classes(units: Units, rows: list[Row], maps: Mapping[tuple[int, int], Bytes]) -> Classes:
    """The classes of all units; without flags, all are 1."""
    flags = np.array([row.flags & (ROWS | COLUMNS) for row in rows], np.int64)
    axes = gridded(units, flags)
    classes = Classes(
        axes,
        np.ones(int(axes.rows.sum()), np.uint8),
        np.ones(int(axes.columns.sum()), np.uint8),
    )
    for (unit, flag), levels in maps.items():
        for wanted, target, firsts in (
            (ROWS, classes.rows, axes.first_rows),
            (COLUMNS, classes.columns, axes.first_columns),
        ):
            if flag == wanted:
                first = int(firsts[unit])
                target[first : first + len(levels)] = levels
    refused = np.flatnonzero((flags > 0) & ~classes.allowed)
    if len(refused):
        came = str(classes.groups[refused[0]])
        raise refusal("fewer classes for a tensor of this shape", came)
    return classes


def _group_counts(reader: Reader, rows: list[Row], classes: Classes) -> Ints:
    """Kept values of each group; of a unit without classes, of all of it."""
    universes, counts, at = classes.universes.tolist(), [], 0
    for row, groups in zip(rows, classes.groups.tolist(), strict=True):
        left = row.kept
        if not row.flags & (ROWS | COLUMNS):
            counts.append(left)
            at += 1
            continue
        own = [0] * groups
        filled = [group for group, universe in enumerate(universes[at : at + groups]) if universe]
        for group in filled[:-1]:
            own[group] = reader.varint(min(left, universes[at + group]))
            left -= own[group]
        last = filled[-1] if filled else 0
        if left > universes[at + last]:
            raise refusal(f"at most {universes[at + last]} values in the last group", str(left))
        own[last] = left
        counts += own
        at += groups
    return np.array(counts, np.int64)


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
