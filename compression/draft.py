"""Drafts: which values a step keeps and about how many bits they take, by entropies alone.

A value is kept where it earns its bits (:mod:`compression.rate`), and how many bits its position
takes depends on what else is kept: on the classes of its row and column
(:mod:`compression.classes`). So each draft takes the dead zones that the one before it found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compression.axes import Axes, counts_between
from compression.bits import bit_length
from compression.candidates import Candidates
from compression.classes import COLUMNS, GROUPS, ROWS
from compression.entropy import ENERGY_PER_BIT, entropy
from compression.nested import LEVELS
from compression.quantise import MAX_CELL
from compression.segments import Floats, Ints
from compression.ways import Crowd, Doubles, Ways, ways
from compression.zones import Zones

_SMALLEST_ZONE, _LARGEST_ZONE = 0.4, 2.2
# A row of the table, for a tensor of which something is kept; vectors often share theirs.
_ROW_BITS, _VECTOR_ROW_BITS = 40.0, 24.0
_CELL_ERROR = 0.1  # what is left of a value once it is sent, in squares of the step
_OCTAVES = 1 / 32  # by which the slope is told
_BITS_BY_VALUES, _FEWER_CELLS = 0.87, 0.1
_CHUNK = 1 << 16  # candidates that are looked at while they are in the cache
_SAMPLE = 1 << 16  # values of which the cells are looked at
_GOLOMB = 1.006  # what Golomb's code takes for the entropy of positions


@dataclass(frozen=True)
class Reach:
    """Candidates under some zones, for steps to come.

    Attributes:
        zones: of all values.
        steps: the largest step with which each candidate is kept.
    """

    zones: Zones
    steps: Floats

    @classmethod
    def of(cls, candidates: Candidates, zones: Zones) -> Reach:
        """Of all candidates."""
        place = np.repeat(zones.rows, candidates.in_rows)
        steps = np.empty_like(candidates.magnitudes)
        for first in range(0, len(steps), _CHUNK):
            own = slice(first, first + _CHUNK)
            place[own] += zones.columns[candidates.columns[own]]
            np.divide(candidates.magnitudes[own], zones.zones[place[own]], out=steps[own])
        return cls(zones, steps)

    def of_kept(self, candidates: Candidates, kept: Ints) -> tuple[Ints, Ints, Floats]:
        """Kept values of each row, the column of each, and its dead zone in steps."""
        in_rows = counts_between(kept, candidates.row_ends)
        column = candidates.columns[kept].astype(np.int64)
        return in_rows, column, self.zones.of_values(in_rows, column)


@dataclass(frozen=True)
class Draft:
    """What a step keeps.

    Attributes:
        step: of the quantiser.
        kept: which candidates are kept.
        wanted: the dead zone of each kept value, in steps.
        flags: ROWS and COLUMNS of each tensor.
        bits: about how many a body of it has.
        slope: about what one octave of the step adds to log2 of the bits, under these zones.
        zones: for the next draft.
    """

    step: float
    kept: Ints
    wanted: Floats
    flags: Ints
    bits: float
    slope: float
    zones: Zones


class Drafter:
    """Writes drafts over some candidates.

    Args:
        axes: of all tensors.
        fineness: what multiplies dead zones.
        structured: whether tensors may have classes.
    """

    def __init__(self, axes: Axes, *, fineness: float, structured: bool) -> None:
        self._axes = axes
        self._fineness = fineness
        self._row_bits = np.where(axes.several, _ROW_BITS, _VECTOR_ROW_BITS)
        self._may = axes.several if structured else np.zeros(len(axes), np.bool_)

    def draft(self, candidates: Candidates, step: float, reach: Reach, limits: Doubles) -> Draft:
        """Keep what lies above its zone, and at any rate what reaches ``limits`` of its tensor."""
        kept = self.kept(candidates, step, reach, limits)
        in_rows, column, wanted = reach.of_kept(candidates, kept)
        crowd = Crowd.of(self._axes, in_rows, column)
        counts = crowd.counts
        cell_bits, first_cells = _cell_bits(candidates.magnitudes[kept], wanted, counts, step)
        found = ways(self._axes, crowd, self._may)
        flags = np.argmin(found.bits, axis=0)
        position_bits = found.bits[flags, np.arange(len(counts))]
        each = _GOLOMB * position_bits + cell_bits + counts + self._row_bits * (counts > 0) + 8
        return Draft(
            step=step,
            kept=kept,
            wanted=wanted,
            flags=flags,
            bits=float(each.sum()),
            slope=_slope(reach, step, len(kept)),
            zones=self._zones(found, flags, first_cells),
        )

    def kept(self, candidates: Candidates, step: float, reach: Reach, limits: Doubles) -> Ints:
        """Which candidates a step keeps."""
        inside = reach.steps >= np.float32(step)
        if np.isfinite(limits).any():
            of_rows = limits[self._axes.grid_of_row]
            inside |= candidates.magnitudes >= np.repeat(of_rows, candidates.in_rows)
        return np.flatnonzero(inside)

    def _zones(self, found: Ways, flags: Ints, first_cells: Doubles) -> Zones:
        """Dead zones by what a value of each group would take."""
        axes, tensor = self._axes, np.arange(len(flags))
        members, universes = found.members[flags, tensor], found.universes[flags, tensor]
        # A sign, and the cell next to the dead zone.
        others = 1 + np.log2((members.sum(axis=1) + 1) / (first_cells + 1))
        bits = np.empty((len(flags), 1 + GROUPS))
        bits[:, 0] = np.log2(np.maximum(axes.sizes, 2))  # to be the only one
        # What it takes to be kept, less what it takes not to be.
        some = np.maximum(members, 0.5)
        bits[:, 1:] = np.log2(np.maximum(universes - some, 0.5) / some)
        bits += others[:, None]
        squares = np.maximum(ENERGY_PER_BIT * bits + _CELL_ERROR, _SMALLEST_ZONE**2)
        zones = np.minimum(np.sqrt(squares), _LARGEST_ZONE) * self._fineness
        by_row, by_column = flags & ROWS > 0, flags & COLUMNS > 0
        return Zones.of(
            axes,
            np.where(by_row[axes.grid_of_row], found.row_classes, 1),
            np.where(by_column[axes.grid_of_column], found.column_classes, 1),
            zones,
        )


def _cell_bits(
    magnitudes: Floats, wanted: Floats, counts: Ints, step: float
) -> tuple[Doubles, Doubles]:
    """Of each tensor the bits of its cells, by the entropies of planes, and those in cell 0."""
    # An odd stride does not fall in step with the rows of a tensor.
    stride = len(magnitudes) // _SAMPLE | 1
    places = magnitudes[::stride] / np.float32(step)
    places -= wanted[::stride]
    np.maximum(places, 0, out=places)
    sampled = -(np.cumsum(counts) // -stride)
    sampled[1:] -= sampled[:-1].copy()
    width = LEVELS + 1
    keys = np.minimum(places, LEVELS).astype(np.int64)
    keys += np.repeat(np.arange(0, width * len(counts), width), sampled)
    members = np.bincount(keys, minlength=width * len(counts)).reshape(-1, width)
    at_least = np.cumsum(members[:, ::-1], axis=1)[:, ::-1]
    planes: Doubles = entropy(at_least[:, 1:], at_least[:, :-1]).sum(axis=1)
    if at_least[:, -1].any():
        beyond = np.flatnonzero(places >= LEVELS)
        tails = np.minimum(places[beyond], MAX_CELL).astype(np.int64) - LEVELS
        largest = np.zeros(len(counts), np.int64)
        np.maximum.at(largest, keys[beyond] // width, tails)
        planes += at_least[:, -1] * bit_length(largest)
    scale = counts / np.maximum(sampled, 1)
    return planes * scale, np.where(sampled > 0, members[:, 0] * scale, counts)


def _slope(reach: Reach, step: float, kept: int) -> float:
    """From how many fewer values a larger step keeps; each then takes somewhat more bits."""
    fewer = int(np.count_nonzero(reach.steps >= np.float32(step * 2**_OCTAVES)))
    values = float(np.log2((fewer + 1) / (kept + 1))) / _OCTAVES
    return min(_BITS_BY_VALUES * values, 0.0) - _FEWER_CELLS
