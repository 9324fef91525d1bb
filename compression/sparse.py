"""The body of a sparse packet: step, a table of counts, and one string of bits."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np

from compression import golomb
from compression.bits import BitReader, Bits, Ints, bit_length, to_planes
from compression.nested import LEVELS, MAX_TAIL_BITS, Nested, nest, unnest
from compression.packet import refusal
from compression.quantise import Quantised
from compression.reader import Reader, varint
from compression.segments import Segments


@dataclass(frozen=True)
class Body:
    """A sparse body whose exact size is known before it is packed.

    Attributes:
        quantised: what it carries.
        segments: the layers that it covers.
        shared: positions that both ends know, as flat indices; None to send them.
    """

    quantised: Quantised
    segments: Segments
    shared: Ints | None = None

    @property
    def kept(self) -> int:
        """Values that it carries."""
        return len(self.quantised.indices)

    @cached_property
    def nbytes(self) -> int:
        """Bytes that :meth:`pack` returns."""
        bits = len(self.quantised.cells) + int(self._tail_widths.sum()) + self._code.bit_count
        return len(self._table) + (bits + 7) // 8

    def pack(self) -> bytes:
        """The body."""
        parts: list[Bits] = [
            self.quantised.negative.astype(np.uint8),
            to_planes(self._nested.tails, self._tail_widths),
            *self._code.bits(),
        ]
        return self._table + np.packbits(np.concatenate(parts), bitorder="little").tobytes()

    @cached_property
    def _nested(self) -> Nested:
        q, segments = self.quantised, self.segments
        starts = np.repeat(segments.starts, q.counts)
        positions = q.indices - starts if self.shared is None else None
        return nest(q.counts, q.cells, positions, segments.sizes)

    @cached_property
    def _code(self) -> golomb.Code:
        return golomb.code(self._nested.subsets)

    @cached_property
    def _tail_widths(self) -> Ints:
        nested = self._nested
        return (
            np.repeat(nested.tail_widths, nested.levels[-1])
            if len(nested.levels) > LEVELS
            else np.zeros(0, np.int64)
        )

    @cached_property
    def _table(self) -> bytes:
        q, nested = self.quantised, self._nested
        out = bytearray(struct.pack("<f", q.step))
        if self.shared is not None:
            out += struct.pack("<I", positions_checksum(self.shared))
        levels = np.stack(nested.levels)
        for layer, (count, *inner) in enumerate(levels.T.tolist()):
            if self.shared is None:
                out += varint(count)
            if not count:
                continue
            out += bytes([int(q.dead_zones[layer]), int(q.offsets[layer])])
            filled = list(takewhile(bool, inner))
            for members in filled:
                out += varint(members)
            out += bytes([int(nested.tail_widths[layer])]) if len(filled) == LEVELS else varint(0)
        return bytes(out)


def parse(reader: Reader, segments: Segments, shared: Ints | None) -> Quantised:
    """Read a sparse body to its end.

    Raises:
        PacketError: it is not one, or was written over other shared positions.
    """
    step = reader.step()
    if shared is not None and (stated := reader.word()) != positions_checksum(shared):
        raise refusal(
            f"shared positions with checksum {positions_checksum(shared):08x}",
            f"{stated:08x}",
            "both ends must derive the same mask; compare its round and seed",
        )
    known = None if shared is None else layer_counts(shared, segments)
    layers = len(segments.layers)
    levels = np.zeros((LEVELS + 1, layers), np.int64)
    fixed = np.zeros((3, layers), np.int64)  # dead zone, offset, tail width
    for layer, size in enumerate(segments.sizes.tolist()):
        count = reader.varint(size) if known is None else int(known[layer])
        levels[0, layer] = count
        if not count:
            continue
        fixed[:2, layer] = reader.byte(), reader.byte()
        for plane in range(1, LEVELS + 1):
            count = reader.varint(count)
            levels[plane, layer] = count
            if not count:
                break
        else:
            fixed[2, layer] = width = reader.byte()
            if width > MAX_TAIL_BITS:
                raise refusal(f"a tail width up to {MAX_TAIL_BITS}", str(width))
    kept = int(levels[0].sum())
    if kept > 8 * reader.left:  # every kept value has a sign
        raise refusal(f"at most {8 * reader.left} values in so few bytes", str(kept))
    bits = BitReader(reader.rest())
    negative = bits.take(kept).astype(np.bool_)
    tails = bits.planes(np.repeat(fixed[2], levels[LEVELS]))
    _check_tails(tails, levels[LEVELS], fixed[2])
    filled = int(levels.any(axis=1).sum())
    planes = list(levels[: min(filled, LEVELS) + 1])
    cells, positions = unnest(bits, planes, tails, segments.sizes, has_positions=shared is None)
    if shared is None:
        shared = np.concatenate(
            [p + start for p, start in zip(positions, segments.starts, strict=True)]
        )
    return Quantised(step, levels[0], fixed[0], fixed[1], shared, negative, cells)


def layer_counts(indices: Ints, segments: Segments) -> Ints:
    """How many of the ascending flat ``indices`` lie in each layer."""
    ends = segments.starts + segments.sizes
    return np.searchsorted(indices, ends) - np.searchsorted(indices, segments.starts)


def positions_checksum(indices: Ints) -> int:
    """CRC-32 of flat indices: tells masks apart that the two ends derived differently."""
    return zlib.crc32(indices.astype("<i8").tobytes())


def _check_tails(tails: Ints, counts: Ints, widths: Ints) -> None:
    largest = np.zeros(len(counts), np.int64)
    np.maximum.at(largest, np.repeat(np.arange(len(counts)), counts), tails)
    if (bit_length(largest) != widths).any():
        raise refusal("the smallest tail width", "a larger one")
