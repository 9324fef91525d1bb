"""The body of a sparse packet: step, a table of the units, and one string of bits."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np

from compression import golomb
from compression.bits import Bits, Ints, to_planes
from compression.classes import COLUMNS, ROWS
from compression.golomb import Code, joined
from compression.nested import LEVELS, Nested, nest
from compression.placement import Placement, map_subsets
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
    def _maps(self) -> list[Ints]:
        """Class arrays and row gains, unit by unit."""
        arrays = []
        for unit in range(len(self.quantised.units)):
            if self.placement is not None and unit in self.placement.classes:
                arrays += map_subsets({unit: self.placement.classes[unit]}, self.placement.flags)
            if len(gain := self.quantised.gains.get(unit, ())) > 1:
                arrays.append(np.asarray(gain))
        return arrays

    @cached_property
    def _head(self) -> bytes:
        """Everything before the bits."""
        q = self.quantised
        out = bytearray(struct.pack("<f", q.step))
        if self.placement is None:
            out += struct.pack("<I", positions_checksum(q.indices))
        out += np.packbits(q.units.joined, bitorder="little").tobytes()
        maps = iter(self._maps)
        levels = np.stack(self._nested.levels).T.tolist()
        for unit, row in enumerate(levels):
            if self.placement is not None:
                out += varint(row[0])
            if row[0]:
                out += self._row(unit, row[1:])
                for _ in range(self._map_count(unit)):
                    array = next(maps)
                    at_least = np.cumsum(np.bincount(array)[::-1])[::-1]
                    out += counts_until_zero(at_least[1:].tolist())
        if self._maps:
            nested = nest(np.array([len(m) for m in self._maps]), np.concatenate(self._maps))
            content = packed(golomb.code(nested.subsets).bits())
            out += varint(len(content)) + content
        return bytes(out) + self._group_counts()

    def _flags(self, unit: int) -> int:
        q = self.quantised
        flags = 0 if self.placement is None else int(self.placement.flags[unit])
        flags |= AFFINE if q.affine[unit] else 0
        if unit in q.gains:
            flags |= GAIN if len(q.gains[unit]) == 1 else ROW_GAINS
        return flags

    def _map_count(self, unit: int) -> int:
        flags = self._flags(unit)
        return sum(bool(flags & flag) for flag in (ROWS, COLUMNS, ROW_GAINS))

    def _row(self, unit: int, planes: list[int]) -> bytes:
        """A unit's row of the table, without its count and its maps."""
        q, flags = self.quantised, self._flags(unit)
        out = bytearray([flags])
        if flags & AFFINE:
            out += struct.pack("<f", float(q.zero_points[unit]))
        else:
            out += varint(int(q.dead_zones[unit]))
        out.append(int(q.offsets[unit]))
        if flags & GAIN:
            out.append(int(q.gains[unit][0]))
        out += counts_until_zero(planes)
        if len(planes) == LEVELS and planes[-1]:
            out.append(int(self._nested.tail_widths[unit]))
        return bytes(out)

    def _group_counts(self) -> bytes:
        out = bytearray()
        if self.placement is None:
            return b""
        at = 0
        subsets = self.placement.subsets
        for unit in range(len(self.quantised.units)):
            found = self.placement.classes.get(unit)
            groups = 1 if found is None else len(found.universes)
            counts, universes = (
                subsets.counts[at : at + groups],
                subsets.universes[at : at + groups],
            )
            at += groups
            if found is not None:
                for count in counts[universes > 0][:-1].tolist():
                    out += varint(count)
        return bytes(out)


def counts_until_zero(counts: Iterable[int]) -> bytes:
    """Plane counts up to the first 0, which is sent, or up to ``LEVELS`` of them."""
    out = bytearray()
    filled = list(takewhile(bool, counts))
    for count in filled:
        out += varint(count)
    return bytes(out) if len(filled) == LEVELS else bytes(out) + varint(0)


def packed(parts: list[Bits]) -> bytes:
    """Bits one behind another, then zeros to the end of the byte."""
    return np.packbits(np.concatenate(parts), bitorder="little").tobytes()


def positions_checksum(indices: Ints) -> int:
    """CRC-32 of flat indices: tells masks apart that the two ends derived differently."""
    return zlib.crc32(np.ascontiguousarray(indices, "<i8").data)
