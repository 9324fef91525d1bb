"""The body of a dense packet: every parameter, as float32 or as scaled signed integers."""

from __future__ import annotations

import struct

import numpy as np

from compression.bit_string import PIECE
from compression.packet import Kind, refusal
from compression.quantise import LARGEST_FLOAT, SMALLEST_STEP
from compression.reader import Reader
from compression.segments import Floats, Segments

_INTEGERS = {Kind.DENSE16: "<i2", Kind.DENSE8: "<i1"}


def body_bytes(kind: Kind, segments: Segments) -> int:
    """Bytes that :func:`pack` returns."""
    if kind is Kind.DENSE32:
        return 4 * segments.parameter_count
    width = np.dtype(_INTEGERS[kind]).itemsize
    return width * segments.parameter_count + 4 * len(segments.parameters)


def pack(kind: Kind, values: Floats, segments: Segments) -> bytes:
    """The body of the flat vector of parameters.

    Integers are ``rint(v/s)`` with ``s = max|v| / (2**(bits-1) - 1)`` for each tensor, so that the
    error stays within ``s/2``; a tensor of zeros has ``s = 0``.
    """
    if kind is Kind.DENSE32:
        return values.astype("<f4").tobytes()
    parts, at = [], 0
    limit = np.iinfo(_INTEGERS[kind]).max
    for spec in segments.parameters:
        part = values[at : at + spec.size].astype(np.float64)
        at += spec.size
        largest = float(np.abs(part).max(initial=0.0))
        scale = float(np.float32(max(largest / limit, SMALLEST_STEP)))
        whole = np.clip(np.rint(part / scale), -limit, limit).astype(_INTEGERS[kind])
        parts += [struct.pack("<f", scale if whole.any() else 0.0), whole.tobytes()]
    return b"".join(parts)


def parse(kind: Kind, reader: Reader, segments: Segments) -> Floats:
    """The flat vector of parameters, always finite.

    Raises:
        PacketError: not such a body.
    """
    if kind is Kind.DENSE32:
        return reader.floats(segments.parameter_count)
    dtype = np.dtype(_INTEGERS[kind])
    values = np.zeros(segments.parameter_count, np.float32)
    at = 0
    for spec in segments.parameters:
        scale = float(reader.floats(1)[0])
        whole = np.frombuffer(reader.take(dtype.itemsize * spec.size), dtype)
        if whole.any() != (scale >= SMALLEST_STEP) or (scale < SMALLEST_STEP and scale != 0):
            raise refusal("a positive scale, or 0 for a tensor of zeros", repr(scale))
        if (whole == np.iinfo(dtype).min).any():
            raise refusal(f"integers from {-np.iinfo(dtype).max}", str(np.iinfo(dtype).min))
        for start in range(0, spec.size, PIECE):
            part = whole[start : start + PIECE] * scale
            stop = at + start + len(part)
            values[at + start : stop] = np.clip(part, -LARGEST_FLOAT, LARGEST_FLOAT)
        at += spec.size
    return values
