"""The update as FedFreeze's text packs it: top-k, a scale for each layer, a width for each layer.

From the text (6.2): kept values are quantised symmetrically with a sign, with a scale s and a width
b of the layer's own, and sent as positions in variable-length integers and values. With v the kept
values of a layer::

    s = max|v| / (2^(b-1) - 1)        q = clip(rint(v / s))        v' = q s

The width follows the layer's range and its history, says the text, and names no rule. Here it is
the least of 2, 4, 8 and 16 bits that would do if the largest value were R, which is how large the
layer's values have lately been (:mod:`compression.value_ranges`), and ``max|v|`` at least: the
expected error ``sqrt(k) R / ((2^(b-1) - 1) sqrt(12))`` is at most a tenth of ``||v||``. So a layer
whose values vary from round to round is sent more finely than one that is always so quiet.
The text's zero point contradicts its "symmetric" and is left out.

This is what people compare with, not what they should use: at a few bits, most kept values are
rounded to 0 (``docs/codec.md``).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression import leb128
from compression.bit_string import BitString, by_planes
from compression.bits import to_planes
from compression.packet import refusal
from compression.quantise import LARGEST_FLOAT, SMALLEST_STEP
from compression.reader import Reader, varint
from compression.segments import Floats, Ints, Segments

WIDTHS = (2, 4, 8, 16)
_RELATIVE_ERROR = 0.1

_Positions = NDArray[np.signedinteger]  # of 32 bits, or of 64 where a layer needs them


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
        return _restored(self.whole, self.scale)


def quantised(values: Floats, positions: Ints, lately: float = 0.0) -> Part:
    """The kept values of a layer, as they are sent.

    Args:
        values: of the layer.
        positions: of each value.
        lately: R, or less if it is not known.

    >>> part = quantised(np.array([0.9, -0.35, 0.1], np.float32), np.arange(3))
    >>> part.width, part.whole.tolist(), round(part.scale, 6)
    (4, [7, -3, 1], 0.128571)
    """
    largest = float(np.abs(values).max(initial=0.0))
    if largest < SMALLEST_STEP:
        return Part(positions[:0], 0, 0.0, np.zeros(0, np.int64))
    width = width_bits(values, max(largest, lately))
    limit = 2 ** (width - 1) - 1
    scale = float(np.float32(max(largest / limit, SMALLEST_STEP)))
    whole = np.clip(np.rint(values.astype(np.float64) / scale), -limit, limit)
    return Part(positions, width, scale, whole.astype(np.int64))


def width_bits(values: Floats, lately: float) -> int:
    """Bits of each of a layer's kept values, by the rule above.

    >>> values = np.array([0.9, -0.35, 0.1], np.float32)
    >>> [width_bits(values, lately) for lately in (0.9, 2.0, 30.0)]
    [4, 8, 16]
    """
    norm = float(np.sqrt((values.astype(np.float64) ** 2).sum()))
    for width in WIDTHS:
        scale = max(lately / (2 ** (width - 1) - 1), SMALLEST_STEP)
        if np.sqrt(len(values)) * scale <= np.sqrt(12) * norm * _RELATIVE_ERROR:
            break
    return width


def fill(
    values: Floats,
    segments: Segments,
    budget_bytes: int,
    density: float | None,
    ranges: Mapping[str, float],
) -> list[Part] | None:
    """The largest values of all layers, as many as fit; None if not even one does.

    Args:
        values: flat vector of all parameters.
        segments: of the covered layers.
        budget_bytes: for the body.
        density: the share of values that is kept at most.
        ranges: R of each layer, where it is known.
    """
    # A value takes a byte of gap and more.
    low, high = 0, min(int(np.count_nonzero(values)), max(budget_bytes, 0))
    if density is not None:
        high = min(high, max(1, round(density * len(values))))
    order = _largest(values, high)
    none = _parts(values, segments, order[:0], ranges)
    best = none if size_bytes(none) <= budget_bytes else None
    nothing = not np.any(values)
    while low < high:
        middle = (low + high + 1) // 2
        parts = _parts(values, segments, order[:middle], ranges)
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
            gaps = int(leb128.byte_lengths(_gaps(part.positions)).sum())
            total += 5 + gaps + (kept * part.width + 7) // 8
    return total


def pack(parts: Sequence[Part]) -> bytes:
    """The body: for each layer a count and, if it is not 0, width, scale, gaps and values."""
    out = bytearray()
    for part in parts:
        out += varint(len(part.positions))
        if len(part.positions):
            out += struct.pack("<Bf", part.width, part.scale)
            out += leb128.written(_gaps(part.positions))
            unsigned = part.whole + (1 << (part.width - 1))
            planes = to_planes(unsigned, np.full(len(unsigned), part.width))
            out += np.packbits(planes, bitorder="little").tobytes()
    return bytes(out)


def parse(reader: Reader, segments: Segments) -> Floats:
    """The flat vector of parameters.

    Positions are kept in 32 bits, and all else is made in pieces, so that no array is larger than
    the layout.

    Raises:
        PacketError: not such a body.
    """
    flat = np.zeros(segments.parameter_count, np.float32)
    for places in _places(segments):
        count = reader.varint(places.size)
        if not count:
            continue
        if count > reader.left:
            raise refusal(f"at most {reader.left} values in so few bytes", str(count))
        width, scale = reader.byte(), reader.step()
        if width not in WIDTHS:
            raise refusal("a width of 2, 4, 8 or 16 bits", str(width))
        positions = _read_positions(reader, count, places.size)
        bits = BitString(reader.take((count * width + 7) // 8))
        something, lowest = False, 0
        for start, stop, _, unsigned in by_planes(bits, np.array([count]), np.array([width])):
            whole = unsigned - (1 << (width - 1))
            something |= bool(whole.any())
            lowest = min(lowest, int(whole.min()))
            flat[places.flat(positions[start:stop])] = _restored(whole, scale)
        if bits.bits(count * width, bits.left).any():
            raise refusal("zero bits at the end of a layer", "others")
        limit = 2 ** (width - 1) - 1
        if lowest < -limit or not something:
            raise refusal(f"whole numbers from {-limit} to {limit}, not all 0", "others")
    return flat


@dataclass(frozen=True)
class _Places:
    """Where the values of a layer lie in the flat vector, tensor by tensor.

    Attributes:
        starts: of each tensor in the flat vector.
        firsts: of each tensor in the layer.
        size: values of the layer.
    """

    starts: Ints
    firsts: Ints
    size: int

    def flat(self, positions: _Positions) -> Ints:
        """Flat indices of positions within the layer."""
        tensor = np.searchsorted(self.firsts, positions, side="right") - 1
        return positions + (self.starts - self.firsts)[tensor]

    def within(self, flat: Ints) -> Ints:
        """The inverse of :meth:`flat`, for indices of this layer."""
        tensor = np.searchsorted(self.starts, flat, side="right") - 1
        return flat + (self.firsts - self.starts)[tensor]


def _places(segments: Segments) -> list[_Places]:
    """Of each layer; tensors without values are left out."""
    found = []
    for owner in range(len(segments.layers)):
        own = np.flatnonzero((segments.owners == owner) & (segments.sizes > 0))
        sizes = segments.sizes[own]
        found.append(_Places(segments.starts[own], np.cumsum(sizes) - sizes, int(sizes.sum())))
    return found


def _read_positions(reader: Reader, count: int, size: int) -> _Positions:
    wide = size >= 2**31
    positions: _Positions = np.empty(count, np.int64 if wide else np.int32)
    at, before = 0, -1
    for gaps in leb128.counts(reader, count, size):
        sums = np.cumsum(gaps + 1) + before
        before = int(sums[-1])
        if before >= size:
            raise refusal("positions inside their layer", "one beyond its end")
        positions[at : at + len(gaps)] = sums
        at += len(gaps)
    return positions


def _restored(whole: Ints, scale: float) -> Floats:
    floats: Floats = np.clip(whole * scale, -LARGEST_FLOAT, LARGEST_FLOAT).astype(np.float32)
    return floats


def _gaps(positions: Ints) -> Ints:
    gaps: Ints = np.diff(positions, prepend=-1) - 1
    return gaps


def _largest(values: Floats, count: int) -> Ints:
    """Indices of the largest magnitudes, falling; ties keep the lower index."""
    if not count:
        return np.zeros(0, np.int64)
    magnitudes = np.abs(values)
    near = np.flatnonzero(magnitudes >= np.partition(magnitudes, -count)[-count])
    return near[np.argsort(-magnitudes[near], kind="stable")][:count]


def _parts(
    values: Floats, segments: Segments, chosen: Ints, ranges: Mapping[str, float]
) -> list[Part]:
    """What is kept of each layer, of the chosen flat indices."""
    ordered = np.sort(chosen)
    ends = np.cumsum(segments.sizes)
    owner = segments.owners[np.searchsorted(ends, ordered, side="right")]
    parts = []
    for number, (name, places) in enumerate(zip(segments.layers, _places(segments), strict=True)):
        own = ordered[owner == number]
        parts.append(quantised(values[own], places.within(own), ranges.get(name, 0.0)))
    return parts
