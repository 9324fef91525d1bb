"""The packet format read one bit at a time, in plain Python and from the document alone.

It shares no code with the package, and trusts its input: refusing is tested elsewhere.
"""

from __future__ import annotations

import math
import struct

from tests.unit.compression.reference_bits import PLANES, Bits, Bytes, clipped
from tests.unit.compression.reference_literal import literal

LN2_16 = 45426


class Unit:
    """A run of tensors, and its row of the table."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.size = sum(t.size for t in tensors)
        self.kept = self.flags = self.zone = self.offset = self.gain = self.width = 0
        self.zero = 0.0
        self.planes, self.map_planes, self.maps = [], {}, {}

    def read(self, body, known):
        self.kept = body.varint() if known is None else known
        if not self.kept:
            return
        self.flags = body.byte()
        if self.flags & 4:
            self.zero = body.float32()
        else:
            self.zone = body.varint()
        self.offset = body.byte()
        if self.flags & 8:
            self.gain = body.byte()
        self.planes = body.until_zero()
        if len(self.planes) == PLANES and self.planes[-1]:
            self.width = body.byte()
        for flag in (1, 2, 16):
            if self.flags & flag:
                self.map_planes[flag] = body.until_zero()

    def map_size(self, flag):
        return self.tensors[0].shape[1 if flag == 2 else 0]

    def groups(self):
        """Lists of element positions, group by group; one list without classes."""
        if not self.flags & 3:
            return [list(range(self.size))]
        shape = self.tensors[0].shape
        depth = math.prod(shape[2:])
        rows = self.maps.get(1, [1] * shape[0])
        columns = self.maps.get(2, [1] * shape[1])
        found = [[] for _ in range(max(rows) + max(columns) - 1)]
        for row, row_class in enumerate(rows):
            for column, column_class in enumerate(columns):
                if row_class and column_class:
                    first = (row * shape[1] + column) * depth
                    found[row_class + column_class - 2] += range(first, first + depth)
        return found

    def gain_of(self, position):
        if self.flags & 16:
            return self.maps[16][position // (self.size // self.map_size(16))]
        return self.gain


def decode(packet, layout, positions=None):
    """Layer names, round, and flat lists of values by tensor name."""
    kind, round_number = packet[3], struct.unpack_from("<I", packet, 12)[0]
    if kind == 0:
        return (), round_number, {}
    bitmap_bytes = math.ceil(len(layout) / 8)
    bitmap = int.from_bytes(packet[20 : 20 + bitmap_bytes], "little")
    layers = [layer for place, layer in enumerate(layout.layers) if bitmap >> place & 1]
    names = tuple(layer.name for layer in layers)
    body, at = packet[20 + bitmap_bytes : -4], 0
    tensors = {}
    for layer in layers:
        for t in layer.tensors:
            if t.kind == "buffer" and t.is_float:
                tensors[t.name] = list(struct.unpack_from(f"<{t.size}f", body, at))
                at += 4 * t.size
    in_order = in_flat_order(layers)
    if kind == 6:
        return names, round_number, tensors | literal(Bytes(body[at:]), layers, in_order)
    if kind >= 3:
        for t in in_order:
            scale = 1.0
            if kind != 3:
                scale = struct.unpack_from("<f", body, at)[0]
                at += 4
            code = {3: "f", 4: "h", 5: "b"}[kind]
            whole = struct.unpack_from(f"<{t.size}{code}", body, at)
            at += struct.calcsize(code) * t.size
            tensors[t.name] = [clipped(w * scale) for w in whole]
        return names, round_number, tensors
    return names, round_number, tensors | sparse(Bytes(body[at:]), in_order, positions)


def places(units, chosen, subsets, positions):
    """Positions and dead zones of the kept values of each unit."""
    kept, zones = [], []
    for unit, groups in zip(units, chosen, strict=True):
        if positions is not None:
            kept.append(known_positions(unit, positions))
            zones.append([unit.zone] * unit.kept)
            continue
        found, wide = [], []
        widths = group_zones(unit.zone, groups)
        for (count, group), zone in zip(groups, widths, strict=True):
            found += [group[place] for place in sorted(subsets.pop(0))]
            wide += [zone] * count
        kept.append(found)
        zones.append(wide)
    return kept, zones


def flags_of(packet, layout, positions=None):
    """Flags of all units of a sparse packet that covers every layer and has no buffers."""
    body = Bytes(packet[20 + math.ceil(len(layout) / 8) : -4])
    body.float32()
    return [unit.flags for unit in read_table(body, in_flat_order(layout.layers), positions)]


def in_flat_order(layers):
    parameters = [t for layer in layers for t in layer.parameters]
    large = [t for t in parameters if len(t.shape) > 1 and t.size >= 1024]
    return large + [t for t in parameters if t not in large]


def sparse(body, tensors, positions):
    """Flat values by tensor name."""
    step = body.float32()
    units = read_table(body, tensors, positions)
    chosen = []  # members and elements of each group of each unit
    for unit in units:
        groups, left = unit.groups(), unit.kept
        filled = [place for place, group in enumerate(groups) if group]
        counts = [0] * len(groups)
        for place in filled[:-1]:
            counts[place] = body.varint()
            left -= counts[place]
        if filled:
            counts[filled[-1]] = left
        chosen.append(list(zip(counts, groups, strict=True)))
    bits = Bits(body.data[body.at :])
    negative = [[bits.next() if not u.flags & 4 else 0 for _ in range(u.kept)] for u in units]
    deepest = [u.planes[-1] if len(u.planes) == PLANES else 0 for u in units]
    tails = bits.by_plane([u.width for u, n in zip(units, deepest, strict=True) for _ in range(n)])
    sets = []
    if positions is None:
        sets += [(count, len(group)) for groups in chosen for count, group in groups]
    sets += plane_sets([(u.kept, u.planes) for u in units])
    subsets = read_subsets(bits, sets)
    kept, zones = places(units, chosen, subsets, positions)
    cells = read_cells([u.kept for u in units], [u.planes for u in units], subsets)
    for place, unit in enumerate(units):
        for element in range(unit.kept):
            if deepest[place] and cells[place][element] == PLANES:
                cells[place][element] += tails.pop(0)
    out = {}
    for place, unit in enumerate(units):
        flat = [0.0] * unit.size
        for index, zone, cell, sign in zip(
            kept[place], zones[place], cells[place], negative[place], strict=True
        ):
            if unit.flags & 4:
                value = unit.zero + (cell + unit.offset / 256) * step
            else:
                value = (zone / 64 + (cell + 0.5 if cell else unit.offset / 256)) * step
            value = (-value if sign else value) / 2 ** unit.gain_of(index)
            flat[index] = clipped(value) + 0.0  # a zero has no sign
        start = 0
        for t in unit.tensors:
            out[t.name] = flat[start : start + t.size]
            start += t.size
    return out


def read_table(body, tensors, positions):
    """The units, with their rows and maps."""
    if positions is not None:
        body.take(4)
    joined = Bits(body.take(math.ceil(len(tensors) / 8)))
    units = []
    for t in tensors:
        if joined.next():
            units[-1] = Unit([*units[-1].tensors, t])
        else:
            units.append(Unit([t]))
    for unit in units:
        unit.read(body, None if positions is None else len(known_positions(unit, positions)))
    read_maps(body, units)
    return units


def known_positions(unit, positions):
    """Positions within the unit that both ends know."""
    known, start = [], 0
    for t in unit.tensors:
        known += [start + int(p) for p in positions.get(t.name, [])]
        start += t.size
    return known


def group_zones(zone, groups):
    """The dead zone of each group, from that of the densest."""
    if len(groups) == 1:
        return [zone]
    logs = []
    for count, group in groups:
        ratio = (max(len(group), count, 1) << 20) // max(count, 1)
        power = ratio.bit_length() - 1
        logs.append(64 * (power - 20) + (ratio >> (power - 6)) - 64)
    least = min(log for log, (count, _) in zip(logs, groups, strict=True) if count)
    return [math.isqrt(zone**2 + 473 * max(log - least, 0) // 64) for log in logs]


def read_maps(body, units):
    keys = [(unit, flag) for unit in units for flag in unit.map_planes]
    if not keys:
        return
    bits = Bits(body.take(body.varint()))
    sizes = [unit.map_size(flag) for unit, flag in keys]
    planes = [unit.map_planes[flag] for unit, flag in keys]
    subsets = read_subsets(bits, plane_sets(list(zip(sizes, planes, strict=True))))
    values = read_cells(sizes, planes, subsets)
    for (unit, flag), value in zip(keys, values, strict=True):
        unit.maps[flag] = value


def plane_sets(rows):
    """Members and universe of every subset, plane by plane."""
    sets = []
    for plane in range(PLANES):
        for count, planes in rows:
            levels = [count, *planes]
            there = plane + 1 < len(levels)
            sets.append((levels[plane + 1], levels[plane]) if there else (0, 0))
    return sets


def read_cells(counts, planes, subsets):
    """The highest plane that each value is in."""
    cells = [[0] * count for count in counts]
    current = [list(range(count)) for count in counts]
    for plane in range(1, PLANES + 1):
        for place in range(len(counts)):
            inside = subsets.pop(0)
            current[place] = [e for i, e in enumerate(current[place]) if i in inside]
            for element in current[place]:
                cells[place][element] = plane
    return cells


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
