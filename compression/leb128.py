"""Many counts in LEB128 at once. What is read is hostile, and read in pieces.

:class:`compression.reader.Reader` reads one count at a time, which is enough for a table.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compression.bit_string import PIECE
from compression.bits import Ints
from compression.packet import refusal
from compression.reader import Reader

_MAX_BYTES = 5


def byte_lengths(values: Ints) -> Ints:
    """Bytes that each count takes, for counts below 2^35.

    >>> byte_lengths(np.array([0, 127, 128, 2**14])).tolist()
    [1, 1, 2, 3]
    """
    lengths = np.ones(len(values), np.int64)
    for place in range(1, _MAX_BYTES):
        lengths += values >= 1 << 7 * place
    return lengths


def written(values: Ints) -> bytes:
    """Counts one behind another: seven bits a byte, lowest first.

    >>> written(np.array([300, 5])).hex()
    'ac0205'
    """
    lengths = byte_lengths(values)
    place = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    more = place < np.repeat(lengths, lengths) - 1
    sevens = (np.repeat(values, lengths) >> 7 * place) & 0x7F
    return (sevens | more * 0x80).astype(np.uint8).tobytes()


def counts(reader: Reader, count: int, largest: int) -> Iterator[Ints]:
    """The next ``count`` canonical numbers, each at most ``largest``, a piece at a time.

    Raises:
        PacketError: the bytes end early, or are no such numbers.
    """
    left = count
    while left:
        part = np.frombuffer(reader.ahead[:PIECE], np.uint8)
        ends = np.flatnonzero(part < 0x80)[:left]
        lengths = np.diff(ends, prepend=-1)
        if lengths.max(initial=0 if len(ends) else len(part)) > _MAX_BYTES:
            raise refusal(f"a count of at most {_MAX_BYTES} bytes", "a longer one")
        if not len(ends):
            raise refusal(f"{len(part) + 1} more bytes", str(len(part)))
        reader.take(int(ends[-1]) + 1)
        left -= len(ends)
        yield _values(part, ends, lengths, largest)


def _values(part: NDArray[np.uint8], ends: Ints, lengths: Ints, largest: int) -> Ints:
    if ((part[ends] == 0) & (lengths > 1)).any():
        raise refusal("the shortest form of a count", "a longer one")
    values = np.zeros(len(ends), np.int64)
    for place in range(int(lengths.max())):
        long = np.flatnonzero(lengths > place)
        sevens = part[ends[long] - lengths[long] + 1 + place].astype(np.int64) & 0x7F
        values[long] |= sevens << 7 * place
    if (most := int(values.max())) > largest:
        raise refusal(f"a count up to {largest}", str(most))
    return values
