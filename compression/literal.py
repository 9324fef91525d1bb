"""The update as FedFreeze's text packs it: top-k, a scale for each layer, a width for each layer.

From the text (6.2): kept values are quantised symmetrically with a sign, with a scale s and a width
b of the layer's own, and sent as positions in variable-length integers and values. With v the kept
values of a layer::

    s = max|v| / (2^(b-1) - 1)        q = clip(rint(v / s))        v' = q s

The text names no rule for b. Here it is the least of 2, 4, 8 and 16 whose expected error relative
to the layer's norm, ``sqrt(k) s / (sqrt(12) ||v||)``, is at most 0.1. "History" enters through the
residual, which is part of v. The text's zero point contradicts its "symmetric" and is left out.

This is what people compare with, not what they should use: at a few bits, most kept values are
rounded to 0 (``docs/codec.md``).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression.bit_string import BitString, by_planes
from compression.bits import to_planes
from compression.packet import refusal
from compression.quantise import LARGEST_FLOAT, SMALLEST_STEP
from compression.reader import Reader, varint
from compression.segments import Floats, Ints, Segments

WIDTHS = (2, 4, 8, 16)
_RELATIVE_ERROR = 0.1


@dataclass(frozen=True)
class Part:
    """What is kept of one layer.

    Attributes:
        positions: ascending, within the layer.
        width: bits of a value, its sign among them; 0 where nothing is kept.
        scale: s, a float32 value.
        whole: q of each value.
    """

    positions: Ints
    width: int
    scale: float
    whole: Ints

    @property
    def values(self) -> Floats:
        """What the receiver sees."""
        restored = np.clip(self.whole * self.scale, -LARGEST_FLOAT, LARGEST_FLOAT)
        floats: Floats = restored.astype(np.float32)
        return floats


def quantised(values: Floats, positions: Ints) -> Part:
    """The kept values of a layer, as they are sent.

    >>> part = quantised(np.array([0.9, -0.35, 0.1], np.float32), np.arange(3))
    >>> part.width, part.whole.tolist(), round(part.scale, 6)
    (4, [7, -3, 1], 0.128571)
    """
    largest = float(np.abs(values).max(initial=0.0))
    norm = float(np.sqrt((values.astype(np.float64) ** 2).sum()))
    if largest < SMALLEST_STEP:
        return Part(positions[:0], 0, 0.0, np.zeros(0, np.int64))
    for width in WIDTHS:
        limit = 2 ** (width - 1) - 1
        scale = float(np.float32(max(largest / limit, SMALLEST_STEP)))
        if np.sqrt(len(values)) * scale <= np.sqrt(12) * norm * _RELATIVE_ERROR:
            break
    whole = np.clip(np.rint(values.astype(np.float64) / scale), -limit, limit)
    return Part(positions, width, scale, whole.astype(np.int64))


def fill(
    values: Floats, segments: Segments, budget_bytes: int, density: float | None
) -> list[Part] | None:
    """The largest values of all layers, as many as fit; None if not even one does.

    Args:
        values: flat vector of all parameters.
        segments: of the covered layers.
        budget_bytes: for the body.
        density: the share of values that is kept at most.
    """
    # A value takes a byte of gap and more.
    low, high = 0, min(int(np.count_nonzero(values)), max(budget_bytes, 0))
    if density is not None:
        high = min(high, max(1, round(density * len(values))))
    order = _largest(values, high)
    none = _parts(values, segments, order[:0])
    best = none if size_bytes(none) <= budget_bytes else None
    nothing = not np.any(values)
    while low < high:
        middle = (low + high + 1) // 2
        parts = _parts(values, segments, order[:middle])
        if size_bytes(parts) <= budget_bytes:
            low, best = middle, parts
        else:
            high = middle - 1
    return best if low or nothing else None


def size_bytes(parts: Sequence[Part]) -> int:
    """Bytes that :func:`pack` returns."""
    total = 0
    for part in parts:
        kept = len(part.positions)
        total += len(varint(kept))
        if kept:
            gaps = np.diff(part.positions, prepend=-1) - 1
            longer = sum(int((gaps >= 1 << places).sum()) for places in (7, 14, 21, 28))
            total += 5 + kept + longer + (kept * part.width + 7) // 8
    return total


def pack(parts: Sequence[Part]) -> bytes:
    """The body: for each layer a count and, if it is not 0, width, scale, gaps and values."""
    out = bytearray()
    for part in parts:
        out += varint(len(part.positions))
        if len(part.positions):
            out += struct.pack("<Bf", part.width, part.scale)
            for gap in (np.diff(part.positions, prepend=-1) - 1).tolist():
                out += varint(gap)
            unsigned = part.whole + (1 << (part.width - 1))
            planes = to_planes(unsigned, np.full(len(unsigned), part.width))
            out += np.packbits(planes, bitorder="little").tobytes()
    return bytes(out)


def parse(reader: Reader, segments: Segments) -> Floats:
    """The flat vector of parameters.

    Raises:
        PacketError: not such a body.
    """
    flat = np.zeros(segments.parameter_count, np.float32)
    for places in _places(segments):
        count = reader.varint(len(places))
        if not count:
            continue
        if count > reader.left:
            raise refusal(f"at most {reader.left} values in so few bytes", str(count))
        width, scale = reader.byte(), reader.step()
        if width not in WIDTHS:
            raise refusal("a width of 2, 4, 8 or 16 bits", str(width))
        gaps = [reader.varint(len(places)) for _ in range(count)]
        positions = np.cumsum(np.array(gaps, np.int64) + 1) - 1
        if positions[-1] >= len(places):
            raise refusal("positions inside their layer", "one beyond its end")
        bits = BitString(reader.take((count * width + 7) // 8))
        pieces = by_planes(bits, np.array([count]), np.array([width]))
        unsigned = np.concatenate([numbers for _, _, _, numbers in pieces])
        if bits.bits(count * width, bits.left).any():
            raise refusal("zero bits at the end of a layer", "others")
        whole = unsigned - (1 << (width - 1))
        if (unsigned == 0).any() or not whole.any():
            limit = 2 ** (width - 1) - 1
            raise refusal(f"whole numbers from {-limit} to {limit}, not all 0", "others")
        flat[places[positions]] = Part(positions, width, scale, whole).values
    return flat


def _largest(values: Floats, count: int) -> Ints:
    """Indices of the largest magnitudes, falling; ties keep the lower index."""
    if not count:
        return np.zeros(0, np.int64)
    magnitudes = np.abs(values)
    near = np.flatnonzero(magnitudes >= np.partition(magnitudes, -count)[-count])
    return near[np.argsort(-magnitudes[near], kind="stable")][:count]


def _places(segments: Segments) -> list[Ints]:
    """The flat indices of each layer's values, in layout order within the flat vector."""
    found = []
    for owner in range(len(segments.layers)):
        own = np.flatnonzero(segments.owners == owner).tolist()
        parts = [np.arange(segments.starts[n], segments.starts[n] + segments.sizes[n]) for n in own]
        found.append(np.concatenate([np.zeros(0, np.int64), *parts]))
    return found


def _parts(values: Floats, segments: Segments, chosen: NDArray[np.int64]) -> list[Part]:
    mask = np.zeros(len(values), np.bool_)
    mask[chosen] = True
    parts = []
    for places in _places(segments):
        positions = np.flatnonzero(mask[places])
        parts.append(quantised(values[places[positions]], positions))
    return parts
