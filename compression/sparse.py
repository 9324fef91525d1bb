"""The body of a sparse packet: step, a table of the units, and one string of bits."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compression import golomb
from compression.bits import Bits, Ints, to_planes
from compression.golomb import Code, joined
from compression.nested import LEVELS, Nested, nest
from compression.placement import Placement
from compression.quantise import Quantised
from compression.reader import varint

AFFINE, GAIN, ROW_GAINS = 4, 8, 16
"""Flags of a unit beside ROWS and COLUMNS."""


@dataclass(frozen=True)
class Body:
    """A sparse body whose exact size is known before it is packed.

    Attributes:
        quantised: what it carries, indices ascending.
        placement: how positions travel; None where both ends know them.
    """

    quantised: Quantised
    placement: Placement | None

    @property
    def kept(self) -> int:
        """Values that it carries."""
        return len(self.quantised.indices)

    @cached_property
    def nbytes(self) -> int:
        """Bytes that :meth:`pack` returns."""
        bits = int(self._signed.sum()) + int(self._tail_widths.sum()) + self._code.bit_count
        return len(self._head) + (bits + 7) // 8

    def pack(self) -> bytes:
        """The body."""
        negative = self.quantised.negative[self._order][self._signed]
        parts: list[Bits] = [
            negative.astype(np.uint8),
            to_planes(self._nested.tails, self._tail_widths),
            *self._code.bits(),
        ]
        return self._head + packed(parts)

    @cached_property
    def _order(self) -> Ints:
        return np.arange(self.kept) if self.placement is None else self.placement.order

    @cached_property
    def _signed(self) -> Bits:
        """Whether each value, in the order of travel, has a sign; units keep their places."""
        return np.repeat(~self.quantised.affine, self.quantised.counts)

    @cached_property
    def _nested(self) -> Nested:
        return nest(self.quantised.counts, self.quantised.cells[self._order])

    @cached_property
    def _code(self) -> Code:
        own = [] if self.placement is None else [self.placement.subsets]
        return golomb.code(joined([*own, self._nested.subsets]))

    @cached_property
    def _tail_widths(self) -> Ints:
        nested = self._nested
        if len(nested.levels) <= LEVELS:
            return np.zeros(0, np.int64)
        return np.repeat(nested.tail_widths, nested.levels[-1])

    @cached_property
    def _maps(self) -> dict[int, list[Ints]]:
        """Class arrays and row gains of the units that have any."""
        q, found = self.quantised, {}
        flagged = [] if self.placement is None else np.flatnonzero(self.placement.flags).tolist()
        for unit in sorted({*flagged, *q.gains}):
            arrays = [] if self.placement is None else self.placement.maps(unit)
            if len(gain := q.gains.get(unit, ())) > 1:
                arrays.append(np.asarray(gain))
            if arrays:
                found[unit] = arrays
        return found

    @cached_property
    def _head(self) -> bytes:
        """Everything before the bits."""
        q = self.quantised
        out = bytearray(struct.pack("<f", q.step))
        if self.placement is None:
            out += struct.pack("<I", positions_checksum(q.indices))
        out += np.packbits(q.units.joined, bitorder="little").tobytes()
        maps = [array for arrays in self._maps.values() for array in arrays]
        nested = nest(np.array([len(m) for m in maps], np.int64), _concatenated(maps))
        map_planes = iter(_by_unit(nested.levels))
        row_of = self._rows()
        for unit, (kept, *planes) in enumerate(_by_unit(self._nested.levels)):
            if self.placement is not None:
                out += varint(kept)
            if kept:
                out += row_of(unit, planes)
                for _ in self._maps.get(unit, ()):
                    out += counts_until_zero(next(map_planes)[1:])
        if maps:
            content = packed(golomb.code(nested.subsets).bits())
            out += varint(len(content)) + content
        return bytes(out) + self._group_counts()

    def _rows(self) -> Callable[[int, list[int]], bytes]:
        """What writes a unit's row of the table, without its count and its maps."""
        q, gains = self.quantised, self.quantised.gains
        placed = 0 if self.placement is None else self.placement.flags
        flags = (placed + AFFINE * q.affine).tolist()
        dead_zones, offsets = q.dead_zones.tolist(), q.offsets.tolist()
        tail_widths = self._nested.tail_widths.tolist()

        def row(unit: int, planes: list[int]) -> bytes:
            gain = gains[unit].tolist() if unit in gains else []
            one, many = len(gain) == 1, len(gain) > 1
            out = bytearray([flags[unit] | GAIN * one | ROW_GAINS * many])
            if flags[unit] & AFFINE:
                out += struct.pack("<f", float(q.zero_points[unit]))
            else:
                out += varint(dead_zones[unit])
            out.append(offsets[unit])
            if one:
                out.append(gain[0])
            out += counts_until_zero(planes)
            if len(planes) == LEVELS and planes[-1]:
                out.append(tail_widths[unit])
            return bytes(out)

        return row

    def _group_counts(self) -> bytes:
        """Of each unit with classes, the kept values of all groups with elements but the last."""
        if self.placement is None or self.placement.classes is None:
            return b""
        subsets, groups = self.placement.subsets, self.placement.groups
        counts, universes = subsets.counts.tolist(), subsets.universes.tolist()
        out, at = bytearray(), 0
        for flags, length in zip(self.placement.flags.tolist(), groups.tolist(), strict=True):
            own = slice(at, at + length)
            at += length
            if flags:
                filled = [k for k, n in zip(counts[own], universes[own], strict=True) if n]
                for count in filled[:-1]:
                    out += varint(count)
        return bytes(out)


def counts_until_zero(counts: list[int]) -> bytes:
    """Plane counts up to the first 0, which is sent, or up to ``LEVELS`` of them.

    >>> counts_until_zero([300, 2, 0, 0]).hex()
    'ac020200'
    """
    filled = counts[: counts.index(0)] if 0 in counts else counts
    out = b"".join(map(varint, filled))
    return out if len(filled) == LEVELS else out + varint(0)


def packed(parts: list[Bits]) -> bytes:
    """Bits one behind another, then zeros to the end of the byte."""
    return np.packbits(np.concatenate(parts), bitorder="little").tobytes()


def positions_checksum(indices: Ints) -> int:
    """CRC-32 of flat indices: tells masks apart that the two ends derived differently."""
    return zlib.crc32(np.ascontiguousarray(indices, "<i8").data)


def _concatenated(arrays: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _by_unit(levels: list[Ints]) -> list[list[int]]:
    """The counts of each unit in all planes."""
    found: list[list[int]] = np.array(levels).T.tolist()
    return found
