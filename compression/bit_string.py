"""Packed bits that arrived. They are unpacked a piece at a time, for each takes a byte then."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compression.bits import Bits, Ints
from compression.packet import refusal

PIECE = 1 << 16
"""Numbers worked on at once: what 64-bit intermediates take does not grow with the packet."""


class BitString:
    """A cursor over packed bits, lowest bit of each byte first."""

    def __init__(self, packed: bytes | memoryview) -> None:
        self._packed = np.frombuffer(packed, np.uint8)
        self._at = 0

    @property
    def left(self) -> int:
        """Bits that are not passed yet, padding among them."""
        return 8 * len(self._packed) - self._at

    def skip(self, count: int) -> int:
        """Pass the next ``count`` bits and return the place of the first.

        Raises:
            PacketError: fewer are left.
        """
        if count > self.left:
            raise refusal(f"{count} more bits", str(self.left))
        self._at += count
        return self._at - count

    def bits(self, place: int, count: int) -> Bits:
        """``count`` bits from ``place`` on, which have been passed."""
        packed = self._packed[place // 8 : (place + count + 7) // 8]
        return np.unpackbits(packed, bitorder="little")[place % 8 : place % 8 + count]


def owners(ends: Ints, start: int, stop: int) -> Ints:
    """The owner of each number from ``start`` to ``stop``; owner i has those below ``ends[i]``.

    >>> owners(np.array([2, 2, 5]), 1, 4).tolist()
    [0, 2, 2]
    """
    first = int(np.searchsorted(ends, start, side="right"))
    last = int(np.searchsorted(ends, stop, side="left")) + 1
    inside = np.diff(np.minimum(ends[first:last], stop), prepend=start)
    return np.repeat(np.arange(first, last), inside)


def by_planes(bits: BitString, counts: Ints, widths: Ints) -> Iterator[tuple[int, int, Ints, Ints]]:
    """Numbers that stand by bit plane (:func:`compression.bits.to_planes`), piece by piece.

    Args:
        bits: at the first plane; left behind the last.
        counts: numbers of each owner.
        widths: bits of each number of an owner.

    Yields:
        Where the piece starts and stops, the owner of each number, and the numbers.

    Raises:
        PacketError: the bits end early.
    """
    deepest = int(widths[counts > 0].max(initial=0))
    places = [bits.skip(int(counts[widths > plane].sum())) for plane in range(deepest)]
    return _pieces(bits, counts, widths, places)


def _pieces(
    bits: BitString, counts: Ints, widths: Ints, places: list[int]
) -> Iterator[tuple[int, int, Ints, Ints]]:
    ends, narrow = np.cumsum(counts), widths.astype(np.uint8)
    total = int(counts.sum())
    for start in range(0, total, PIECE):
        stop = min(start + PIECE, total)
        owner = owners(ends, start, stop)
        width = narrow[owner]
        numbers = np.zeros(stop - start, np.int64)
        for first in range(0, len(places), 8):
            # Bits are put together in bytes, of which many more are handled at once.
            octet = np.zeros(stop - start, np.uint8)
            for plane in range(first, min(first + 8, len(places))):
                wide = width > plane
                count = int(np.count_nonzero(wide))
                part = bits.bits(places[plane], count) << np.uint8(plane - first)
                places[plane] += count
                if count == len(wide):
                    octet |= part
                else:
                    octet[wide] |= part
            numbers |= octet.astype(np.int64) << first
        yield start, stop, owner, numbers
