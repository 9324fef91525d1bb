"""Bits and bytes as the packet format has them, one at a time, for the reference decoders."""

from __future__ import annotations

import struct

PLANES = 16
LARGEST = (2 - 2**-23) * 2.0**127


class Bits:
    def __init__(self, data: bytes) -> None:
        self.bits = [(byte >> place) & 1 for byte in data for place in range(8)]
        self.at = 0

    def next(self) -> int:
        self.at += 1
        return self.bits[self.at - 1]

    def by_plane(self, widths: list[int]) -> list[int]:
        values = [0] * len(widths)
        for place in range(max(widths, default=0)):
            for index, width in enumerate(widths):
                if width > place:
                    values[index] |= self.next() << place
        return values


class Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self):
        return self.take(1)[0]

    def float32(self):
        return struct.unpack("<f", self.take(4))[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def until_zero(self):
        counts = []
        while len(counts) < PLANES:
            counts.append(self.varint())
            if not counts[-1]:
                break
        return counts


def as_float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def clipped(value: float) -> float:
    return as_float32(max(-LARGEST, min(value, LARGEST)))
