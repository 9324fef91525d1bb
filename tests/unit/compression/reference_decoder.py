"""The packet format read one bit at a time, in plain Python and from the document alone.

It shares no code with the package, and trusts its input: refusing is tested elsewhere.
"""

from __future__ import annotations

import math
import struct

LN2_16 = 45426
LEVELS = 16
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


def as_float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def decode(packet, layout, positions=None):
    """Layer names, round, and flat lists of values by tensor name."""
    kind, round_number = packet[3], struct.unpack_from("<I", packet, 12)[0]
    if kind == 0:
        return (), round_number, {}
    bitmap_bytes = math.ceil(len(layout) / 8)
    bitmap = int.from_bytes(packet[20 : 20 + bitmap_bytes], "little")
    layers = [layer for place, layer in enumerate(layout.layers) if bitmap >> place & 1]
    body, at = packet[20 + bitmap_bytes : -4], 0
    tensors = {}
    for layer in layers:
        for t in layer.tensors:
            if t.kind == "buffer" and t.is_float:
                tensors[t.name] = list(struct.unpack_from(f"<{t.size}f", body, at))
                at += 4 * t.size
    if kind >= 3:
        for layer in layers:
            for t in layer.parameters:
                scale = 1.0
                if kind != 3:
                    scale = struct.unpack_from("<f", body, at)[0]
                    at += 4
                code = {3: "f", 4: "h", 5: "b"}[kind]
                whole = struct.unpack_from(f"<{t.size}{code}", body, at)
                at += struct.calcsize(code) * t.size
                tensors[t.name] = [
                    as_float32(max(-LARGEST, min(w * scale, LARGEST))) for w in whole
                ]
        return tuple(layer.name for layer in layers), round_number, tensors
    values = sparse_values(body[at:], layers, positions)
    for layer, flat in zip(layers, values, strict=True):
        start = 0
        for t in layer.parameters:
            tensors[t.name] = flat[start : start + t.size]
            start += t.size
    return tuple(layer.name for layer in layers), round_number, tensors


def known_positions(layer, positions):
    """Positions within the layer that both ends know."""
    known, start = [], 0
    for t in layer.parameters:
        known += [start + int(p) for p in positions.get(t.name, [])]
        start += t.size
    return known


def varint(body, at):
    value = shift = 0
    while body[at] >= 128:
        value |= (body[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | body[at] << shift, at + 1


def read_table(body, at, layers, positions):
    """For each layer: counts by plane, dead zone, offset, tail width, known positions."""
    table = []
    for layer in layers:
        zone = offset = width = 0
        if positions is None:
            known = []
            count, at = varint(body, at)
        else:
            known = known_positions(layer, positions)
            count = len(known)
        levels = [count]
        if count:
            zone, offset = body[at], body[at + 1]
            at += 2
            while levels[-1] and len(levels) <= LEVELS:
                count, at = varint(body, at)
                levels.append(count)
            if levels[-1]:
                width = body[at]
                at += 1
        table.append((levels, zone, offset, width, known))
    return table, at


def list_sets(table, sizes, positions):
    """Members and universe of every subset, plane by plane."""
    sets = []
    for plane in range(LEVELS + 1):
        for (levels, *_), size in zip(table, sizes, strict=True):
            if plane == 0 and positions is None:
                sets.append((levels[0], size))
            elif plane:
                there = plane < len(levels)
                sets.append((levels[plane], levels[plane - 1]) if there else (0, 0))
    return sets


def sparse_values(body, layers, positions):
    """Flat values of each layer."""
    step = struct.unpack_from("<f", body)[0]
    table, at = read_table(body, 4 if positions is None else 8, layers, positions)
    bits = Bits(body[at:])
    negative = [[bits.next() for _ in range(levels[0])] for levels, *_ in table]
    deepest = [levels[LEVELS] if len(levels) > LEVELS else 0 for levels, *_ in table]
    tail_widths = [w for (*_, w, _), n in zip(table, deepest, strict=True) for _ in range(n)]
    tails = bits.by_plane(tail_widths)
    sizes = [layer.parameter_count for layer in layers]
    subsets = read_subsets(bits, list_sets(table, sizes, positions))
    kept = [sorted(subsets.pop(0)) for _ in layers] if positions is None else [t[4] for t in table]
    cells = [[0] * len(k) for k in kept]
    current = [list(range(len(k))) for k in kept]
    for plane in range(1, LEVELS + 1):
        for place in range(len(layers)):
            inside = subsets.pop(0)
            current[place] = [e for i, e in enumerate(current[place]) if i in inside]
            for element in current[place]:
                cells[place][element] = plane
    for place in range(len(layers)):
        if deepest[place]:
            for element in current[place]:
                cells[place][element] += tails.pop(0)
    out = []
    for place, (_, zone, offset, *_) in enumerate(table):
        flat = [0.0] * sizes[place]
        for index, cell, sign in zip(kept[place], cells[place], negative[place], strict=True):
            inside = cell + 0.5 if cell else offset / 256
            value = as_float32(min((zone / 64 + inside) * step, LARGEST))
            flat[index] = -value if sign else value
        out.append(flat)
    return out


def read_subsets(bits, sets):
    divisors = []
    for members, universe in sets:
        coded = min(members, universe - members)
        if coded:
            scaled = LN2_16 * (2 * universe - coded) // (2 * coded)
            divisors += [max(1, (scaled + 2**15) >> 16)] * coded
    widths = [(d - 1).bit_length() for d in divisors]
    low = bits.by_plane([max(w - 1, 0) for w in widths])
    remainders = []
    for value, width, divisor in zip(low, widths, divisors, strict=True):
        cutoff = 2**width - divisor
        last = width > 0 and value >= cutoff
        remainders.append(2 * value + bits.next() - cutoff if last else value)
    gaps = []
    for remainder, divisor in zip(remainders, divisors, strict=True):
        quotient = 0
        while not bits.next():
            quotient += 1
        gaps.append(quotient * divisor + remainder)
    subsets = []
    for members, universe in sets:
        position, chosen = -1, set()
        for _ in range(min(members, universe - members)):
            position += 1 + gaps.pop(0)
            chosen.add(position)
        flipped = 2 * members > universe
        subsets.append(set(range(universe)) - chosen if flipped else chosen)
    return subsets
