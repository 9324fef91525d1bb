"""Literal bodies read in plain Python, from the document alone."""

from __future__ import annotations

import struct

from tests.unit.compression.reference_bits import Bits, Bytes, clipped


def literal(body: Bytes, layers: list, in_order: list) -> dict[str, list[float]]:
    """Flat values by tensor name, of layers whose tensors lie ``in_order`` in the flat vector."""
    out = {}
    for layer in layers:
        own = [t for t in in_order if t in layer.parameters]
        flat = [0.0] * sum(t.size for t in own)
        kept = body.varint()
        if kept:
            width, scale = body.byte(), struct.unpack("<f", body.take(4))[0]
            gaps = [body.varint() for _ in range(kept)]
            numbers = Bits(body.take((kept * width + 7) // 8)).by_plane([width] * kept)
            position = -1
            for gap, number in zip(gaps, numbers, strict=True):
                position += 1 + gap
                flat[position] = clipped((number - 2 ** (width - 1)) * scale)
        for t in own:
            out[t.name], flat = flat[: t.size], flat[t.size :]
    return out
