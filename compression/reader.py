"""Bounded reading of a packet's body: every read is checked against what is left."""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from compression.packet import refusal
from compression.quantise import SMALLEST_STEP

_MAX_VARINT_BYTES = 5


class Reader:
    """A cursor over bytes that arrived.

    Raises:
        PacketError: from every method, where the body ends early or a value is out of range.
    """

    def __init__(self, body: bytes | memoryview) -> None:
        self._body = memoryview(body)
        self._at, self._end = 0, len(self._body)

    @property
    def left(self) -> int:
        """Bytes that are not read yet."""
        return self._end - self._at

    @property
    def ahead(self) -> memoryview:
        """All that is left, to look at."""
        return self._body[self._at :]

    def take(self, count: int) -> memoryview:
        """The next ``count`` bytes, which are not copied."""
        if count > self.left:
            raise refusal(f"{count} more bytes", str(self.left))
        self._at += count
        return self._body[self._at - count : self._at]

    def byte(self) -> int:
        """The next byte."""
        at = self._at
        if at == self._end:
            raise refusal("1 more bytes", "0")
        self._at = at + 1
        return self._body[at]

    def word(self) -> int:
        """The next 32-bit word."""
        return int.from_bytes(self.take(4), "little")

    def floats(self, count: int) -> NDArray[np.float32]:
        """The next ``count`` finite float32 values, as a copy."""
        values = np.frombuffer(self.take(4 * count), "<f4").astype(np.float32)
        if not np.isfinite(values).all():
            raise refusal("finite values", "a NaN or an infinity")
        return values

    def step(self) -> float:
        """The next float32, which must be finite, positive and not subnormal."""
        value = float(struct.unpack("<f", self.take(4))[0])
        if not (math.isfinite(value) and value >= SMALLEST_STEP):
            raise refusal("a step or scale that is finite, positive and normal", repr(value))
        return value

    def varint(self, largest: int) -> int:
        """The next canonical LEB128 number, at most ``largest``."""
        value = self.byte()
        if value >= 0x80:
            value = self._longer(value & 0x7F)
        if value > largest:
            raise refusal(f"a count up to {largest}", str(value))
        return value

    def _longer(self, value: int) -> int:
        """A number whose first byte, which has been read, says that more follow."""
        for place in range(1, _MAX_VARINT_BYTES):
            byte = self.byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if byte == 0:
                    raise refusal("the shortest form of a count", "a longer one")
                return value
        raise refusal(f"a count of at most {_MAX_VARINT_BYTES} bytes", "a longer one")

    def rest(self) -> memoryview:
        """All that is left."""
        return self.take(self.left)

    def finish(self) -> None:
        """Refuse bytes that nothing has read."""
        if self.left:
            raise refusal("the end of the body", f"{self.left} more bytes")


def varint(value: int) -> bytes:
    """A count in LEB128: seven bits a byte, lowest first.

    >>> varint(300).hex()
    'ac02'
    """
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
