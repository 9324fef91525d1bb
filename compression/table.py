"""Reading the table of a sparse packet: a row for each unit. The input is hostile."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from compression.bits import Bools, Ints
from compression.classes import COLUMNS, MAX_CLASS, ROWS
from compression.nested import LEVELS, MAX_TAIL_BITS
from compression.packet import refusal
from compression.quantise import MAX_DEAD_ZONE, MAX_GAIN
from compression.reader import Reader
from compression.sparse import AFFINE, GAIN, ROW_GAINS
from fedfreeze.layout import TensorSpec

_MAPS = (ROWS, COLUMNS, ROW_GAINS)
_ALL_FLAGS = ROWS | COLUMNS | AFFINE | GAIN | ROW_GAINS


@dataclass
class Row:
    """A unit's row of the table, as it is read.

    Attributes:
        kept: values of the unit that travel.
        flags: what it has.
        dead_zone: in 1/64 of the step.
        offset: in 1/256.
        zero_point: of an affine unit.
        gain: exponent; 0 where there is none, or one for each row.
        levels: values in each plane from 1 on.
        tail_width: bits of a tail.
        map_levels: by flag, the entries of a map and how many of them are in each plane.
    """

    kept: int
    flags: int = 0
    dead_zone: int = 0
    offset: int = 0
    zero_point: float = 0.0
    gain: int = 0
    levels: list[int] = field(default_factory=list)
    tail_width: int = 0
    map_levels: dict[int, list[int]] = field(default_factory=dict)

    @property
    def affine(self) -> bool:
        """Whether it has a zero point in place of signs."""
        return bool(self.flags & AFFINE)

    @property
    def tails(self) -> int:
        """Values in the last plane."""
        return self.levels[-1] if len(self.levels) == LEVELS else 0


def read_joined(reader: Reader, tensors: int) -> Bools:
    """Which tensors go on with the unit of the one before.

    Raises:
        PacketError: the first does, or one that does not exist.
    """
    packed = np.frombuffer(reader.take((tensors + 7) // 8), np.uint8)
    bits = np.unpackbits(packed, bitorder="little").astype(np.bool_)
    if bits[tensors:].any() or bits[:1].any():
        raise refusal(
            f"which of {tensors} tensors go on with the one before", packed.tobytes().hex()
        )
    return bits[:tensors]


def read_row(reader: Reader, tensor: TensorSpec | None, size: int, known: int | None) -> Row:
    """The next row.

    Args:
        reader: at its first byte.
        tensor: the one tensor of the unit; None for a unit of several.
        size: elements of the unit.
        known: its kept values, where both ends know the positions.

    Raises:
        PacketError: no such row can be.
    """
    kept = reader.varint(size) if known is None else known
    row = Row(kept)
    if not kept:
        return row
    row.flags = flags = reader.byte()
    dimensions = 0 if tensor is None else len(tensor.shape)
    wrong = (
        flags & ~_ALL_FLAGS
        or (flags & (ROWS | COLUMNS) and (dimensions < 2 or known is not None))
        or (flags & ROW_GAINS and (dimensions < 1 or flags & GAIN))
    )
    if wrong:
        raise refusal("flags that suit the unit", f"{flags:#04x}")
    if flags & AFFINE:
        row.zero_point = float(reader.floats(1)[0])
    else:
        row.dead_zone = reader.varint(MAX_DEAD_ZONE)
    row.offset = reader.byte()
    if flags & GAIN:
        row.gain = reader.byte()
        if not 1 <= row.gain <= MAX_GAIN:
            raise refusal(f"a gain from 1 to {MAX_GAIN}", str(row.gain))
    row.levels = _counts_until_zero(reader, kept, LEVELS)
    if row.tails:
        row.tail_width = reader.byte()
        if row.tail_width > MAX_TAIL_BITS:
            raise refusal(f"a tail width up to {MAX_TAIL_BITS}", str(row.tail_width))
    for flag in _MAPS:
        if flags & flag and tensor is not None:
            length = tensor.shape[1 if flag == COLUMNS else 0]
            most = MAX_GAIN if flag == ROW_GAINS else MAX_CLASS
            row.map_levels[flag] = [length, *_counts_until_zero(reader, length, most)]
    return row


def in_planes(levels: list[list[int]]) -> list[Ints]:
    """Counts by row as counts by plane; at least the first plane."""
    deepest = max((len(row) for row in levels), default=1)
    table = np.zeros((len(levels), deepest), np.int64)
    for place, row in enumerate(levels):
        table[place, : len(row)] = row
    planes = list(table.T)
    while len(planes) > 1 and not planes[-1].any():
        planes.pop()
    return planes


def _counts_until_zero(reader: Reader, largest: int, most: int) -> list[int]:
    """Counts that never rise, up to the first 0, or ``LEVELS`` of them."""
    counts: list[int] = []
    while len(counts) < LEVELS:
        largest = reader.varint(largest)
        if largest and len(counts) == most:
            raise refusal(f"at most {most} planes", "more")
        counts.append(largest)
        if not largest:
            break
    return counts
