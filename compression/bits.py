"""Bit arrays: one ``uint8`` a bit, lowest bit of each byte first once packed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compression.packet import refusal

Bits = NDArray[np.uint8]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def bit_length(values: Ints) -> Ints:
    """Bits that each value needs; 0 needs none. Exact below 2^53.

    >>> bit_length(np.array([0, 1, 4, 255, 256])).tolist()
    [0, 1, 3, 8, 9]
    """
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)


def to_planes(values: Ints, widths: Ints) -> Bits:
    """Bit 0 of every value that is at least 1 bit wide, then bit 1 of those of 2 bits, and so on.

    Args:
        values: shape ``(k,)``, each below ``2**width``.
        widths: shape ``(k,)``, bits of each value.
    """
    planes = []
    while widths.size:
        values, widths = values[widths > 0], widths[widths > 0]
        planes.append((values & 1).astype(np.uint8))
        values, widths = values >> 1, widths - 1
    return np.concatenate(planes) if planes else np.zeros(0, np.uint8)


class BitReader:
    """A cursor over packed bits.

    Raises:
        PacketError: from every method, where the bits end early or padding is not zero.
    """

    def __init__(self, packed: bytes) -> None:
        self._bits: Bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        self._at = 0

    @property
    def left(self) -> int:
        """Bits that are not read yet, padding among them."""
        return len(self._bits) - self._at

    def take(self, count: int) -> Bits:
        """The next ``count`` bits."""
        if count > self.left:
            raise refusal(f"{count} more bits", str(self.left))
        self._at += count
        return self._bits[self._at - count : self._at]

    def planes(self, widths: Ints) -> Ints:
        """The inverse of :func:`to_planes`."""
        if int(widths.sum()) > self.left:
            raise refusal(f"{int(widths.sum())} more bits", str(self.left))
        values = np.zeros(widths.shape, np.int64)
        for place in range(int(widths.max(initial=0))):
            wide = np.flatnonzero(widths > place)
            values[wide] |= self.take(len(wide)).astype(np.int64) << place
        return values

    def unary(self, count: int) -> Ints:
        """The lengths of ``count`` runs of zeros, each closed by a one; they fill all that is left.

        Less than a byte of zero padding may follow the last.
        """
        rest = self.take(self.left)
        ends = np.flatnonzero(rest) + 1
        if len(ends) != count:
            raise refusal(f"{count} unary numbers", str(len(ends)))
        padding = len(rest) - int(ends[-1] if count else 0)
        if padding > 7:
            raise refusal("less than a byte of padding", f"{padding} bits")
        return np.diff(ends, prepend=0) - 1


def from_unary(values: Ints) -> Bits:
    """Each value as so many zeros and a one.

    >>> from_unary(np.array([0, 2])).tolist()
    [1, 0, 0, 1]
    """
    ends = np.cumsum(values + 1)
    bits = np.zeros(int(ends[-1]) if ends.size else 0, np.uint8)
    bits[ends - 1] = 1
    return bits
