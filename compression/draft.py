"""Drafts: which values a step keeps and about how many bits they take, by entropies alone.

A value is kept where it earns its bits (:mod:`compression.rate`), and how many bits its position
takes depends on what else is kept: on the classes of its row and column
(:mod:`compression.classes`). So each draft takes the dead zones that the one before it found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression.bits import Bools, bit_length
from compression.candidates import Axes, Candidates, Places
from compression.classes import COLUMNS, MAX_CLASS, ROWS
from compression.entropy import entropy
from compression.nested import LEVELS
from compression.placement import LEAST_KEPT
from compression.quantise import MAX_CELL
from compression.rate import ENERGY_PER_BIT
from compression.segments import Ints

Doubles = NDArray[np.float64]

_GROUPS = 2 * MAX_CLASS - 1
_SMALLEST_ZONE, _LARGEST_ZONE = 0.4, 2.2
# A row of the table, for a tensor of which something is kept; vectors often share theirs.
_ROW_BITS, _VECTOR_ROW_BITS = 40.0, 24.0
_CELL_ERROR = 0.1  # what is left of a value once it is sent, in squares of the step
_OCTAVES = 1 / 32  # by which the slope is told
_BITS_BY_VALUES, _FEWER_CELLS = 0.87, 0.1
_GOLOMB = 1.006  # what Golomb's code takes for the entropy of positions


@dataclass(frozen=True)
class Zones:
    """Dead zones in steps, by the group of each value.

    Attributes:
        rows, columns: what each row and column adds to the number of the group; far below 0 for
            those that hold nothing.
        table: shape ``(tensors, 1 + groups)``; the first is for values in no group.
    """

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    table: NDArray[np.float32]

    @classmethod
    def flat(cls, axes: Axes, zones: Doubles) -> Zones:
        """One zone for each tensor."""
        table = np.repeat(zones[:, None], 1 + _GROUPS, axis=1).astype(np.float32)
        return cls(
            np.ones(len(axes.tensor_of_row), np.int32),
            np.ones(len(axes.tensor_of_column), np.int32),
            table,
        )

    def of_rows(self, axes: Axes) -> NDArray[np.float32]:
        """The narrowest zone that a value of each row can have."""
        most = np.full(len(self.table), -2 * MAX_CLASS, np.int32)
        np.maximum.at(most, axes.tensor_of_column, self.columns)
        group = np.maximum(self.rows + most[axes.tensor_of_row] - 1, 0)
        narrowest = np.minimum.accumulate(self.table, axis=1)
        zones: NDArray[np.float32] = narrowest[axes.tensor_of_row, group]
        return zones

    def of(self, candidates: Candidates) -> NDArray[np.float32]:
        """The zone of each candidate."""
        group = self.rows[candidates.rows]
        group += self.columns[candidates.columns]
        group -= 1
        np.maximum(group, 0, out=group)
        firsts = np.arange(len(candidates.counts), dtype=np.int32) * np.int32(1 + _GROUPS)
        group += np.repeat(firsts, candidates.counts)
        return self.table.reshape(-1)[group]


@dataclass(frozen=True)
class Reach:
    """Candidates under some zones, for steps to come.

    Attributes:
        wanted: the dead zone of each candidate, in steps.
        steps: the largest step with which each is kept.
    """

    wanted: NDArray[np.float32]
    steps: NDArray[np.float32]

    @classmethod
    def of(cls, candidates: Candidates, zones: Zones) -> Reach:
        """Of all candidates."""
        wanted = zones.of(candidates)
        return cls(wanted, candidates.magnitudes / wanted)


@dataclass(frozen=True)
class Draft:
    """What a step keeps.

    Attributes:
        step: of the quantiser.
        kept: which candidates are kept.
        wanted: the dead zone of each kept value, in steps.
        counts: kept values of each tensor.
        flags: ROWS and COLUMNS of each tensor.
        bits: about how many a body of it has.
        slope: about what one octave of the step adds to log2 of the bits, under these zones.
        zones: for the next draft.
    """

    step: float
    kept: Ints
    wanted: NDArray[np.float32]
    counts: Ints
    flags: Ints
    bits: float
    slope: float
    zones: Zones


class Drafter:
    """Writes drafts over some candidates.

    Args:
        axes: of all tensors.
        sizes: elements of each tensor.
        fineness: what multiplies dead zones.
        structured: whether tensors may have classes.
    """

    def __init__(self, axes: Axes, sizes: Ints, *, fineness: float, structured: bool) -> None:
        self._axes = axes
        self._sizes = sizes
        self._fineness = fineness
        self._structured = structured
        several = (axes.rows > 1) | (axes.columns > 1)
        self._row_bits = np.where(several, _ROW_BITS, _VECTOR_ROW_BITS)
        self._may = several if structured else np.zeros(len(sizes), np.bool_)

    def draft(self, candidates: Candidates, step: float, reach: Reach, limits: Doubles) -> Draft:
        """Keep what lies above its zone, and at any rate what reaches ``limits`` of its tensor."""
        inside = reach.steps >= np.float32(step)
        if np.isfinite(limits).any():
            inside |= candidates.magnitudes >= np.repeat(limits, candidates.counts)
        kept = np.flatnonzero(inside)
        ends = np.searchsorted(kept, np.cumsum(candidates.counts))
        counts = np.diff(ends, prepend=0)
        wanted = reach.wanted[kept]
        tensors = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        cell_bits, first_cells = self._cell_bits(
            candidates.magnitudes[kept], wanted, tensors, counts, step
        )
        row, column = candidates.rows[kept], candidates.columns[kept]
        rows = np.bincount(row, minlength=len(self._axes.tensor_of_row))
        columns = np.bincount(column, minlength=len(self._axes.tensor_of_column))
        ways = self._ways(tensors, counts, (row, rows), (column, columns))
        position_bits = np.stack([bits for bits, _, _ in ways])
        flags = np.argmin(position_bits, axis=0)
        chosen = position_bits[flags, np.arange(len(counts))]
        total = (_GOLOMB * chosen + cell_bits + counts + self._row_bits * (counts > 0) + 8).sum()
        return Draft(
            step=step,
            kept=kept,
            wanted=wanted,
            counts=counts,
            flags=flags,
            bits=float(total),
            slope=_slope(reach, step, len(kept)),
            zones=self._zones(ways, flags, first_cells, (rows, columns)),
        )

    def _cell_bits(
        self,
        magnitudes: NDArray[np.float32],
        wanted: NDArray[np.float32],
        tensors: NDArray[np.int32],
        counts: Ints,
        step: float,
    ) -> tuple[Doubles, Ints]:
        """Of each tensor the bits of its cells, by the entropies of planes, and those in cell 0."""
        cells = np.clip(magnitudes / np.float32(step) - wanted, 0, MAX_CELL).astype(np.int32)
        keys = np.minimum(cells, LEVELS) + tensors * np.int32(LEVELS + 1)
        members = np.bincount(keys, minlength=(LEVELS + 1) * len(counts))
        at_least = np.cumsum(members.reshape(-1, LEVELS + 1)[:, ::-1], axis=1)[:, ::-1]
        planes: Doubles = entropy(at_least[:, 1:], at_least[:, :-1]).sum(axis=1)
        if at_least[:, -1].any():
            largest = np.zeros(len(counts), np.int64)
            beyond = np.flatnonzero(cells >= LEVELS)
            np.maximum.at(largest, tensors[beyond], cells[beyond] - LEVELS)
            planes += at_least[:, -1] * bit_length(largest)
        return planes, at_least[:, 0] - at_least[:, 1]

    def _ways(
        self,
        tensor: Places,
        counts: Ints,
        in_rows: tuple[Places, Ints],
        in_columns: tuple[Places, Ints],
    ) -> list[tuple[Doubles, Ints, Ints]]:
        """For each choice of flags: bits of all positions, and members and universe by group.

        Args:
            tensor: of each kept value.
            counts: kept values of each tensor.
            in_rows: the row of each kept value, and the kept values of each row.
            in_columns: the same of columns.
        """
        (row, rows), (column, columns) = in_rows, in_columns
        tensors = len(counts)
        whole = np.zeros((tensors, _GROUPS), np.int64), np.zeros((tensors, _GROUPS), np.int64)
        whole[0][:, 0], whole[1][:, 0] = counts, self._sizes
        found = [(entropy(counts, self._sizes), *whole)]
        may = self._may & (counts >= LEAST_KEPT)
        if not may.any():
            return found
        axes = self._axes
        row_class, column_class = _classes(rows), _classes(columns)
        row_hist = _histogram(axes.tensor_of_row, row_class, tensors)
        column_hist = _histogram(axes.tensor_of_column, column_class, tensors)
        maps = _map_bits(row_hist), _map_bits(column_hist)
        # By rows, by columns, by both.
        members = np.zeros((3, tensors, _GROUPS), np.int64)
        universes = np.zeros((3, tensors, _GROUPS), np.int64)
        members[0, :, :MAX_CLASS] = _histogram(axes.tensor_of_row, row_class, tensors, rows)[:, 1:]
        members[1, :, :MAX_CLASS] = _histogram(
            axes.tensor_of_column, column_class, tensors, columns
        )[:, 1:]
        keys = row_class[row] + column_class[column]
        keys += tensor * np.int32(_GROUPS) - np.int32(2)
        members[2] = np.bincount(keys, minlength=tensors * _GROUPS).reshape(tensors, _GROUPS)
        universes[0, :, :MAX_CLASS] = row_hist[:, 1:] * axes.columns[:, None]
        universes[1, :, :MAX_CLASS] = column_hist[:, 1:] * axes.rows[:, None]
        for number in range(MAX_CLASS):
            if row_hist[:, number + 1].any():
                universes[2, :, number : number + MAX_CLASS] += (
                    row_hist[:, number + 1 : number + 2] * column_hist[:, 1:]
                )
        universes *= axes.depths[:, None]
        bits = entropy(members, universes).sum(axis=2) + _varint_bits(members, universes)
        bits += np.stack([*maps, maps[0] + maps[1]])
        groups = _GROUPS - np.argmax(universes[:, :, ::-1] > 0, axis=2)
        affordable = may & (6 * (groups * axes.rows + axes.columns) <= self._sizes)
        bits = np.where(affordable, bits, np.inf)
        return found + list(zip(bits, members, universes, strict=True))

    def _zones(
        self,
        ways: list[tuple[Doubles, Ints, Ints]],
        flags: Ints,
        first_cells: Ints,
        kept: tuple[Ints, Ints],
    ) -> Zones:
        """Dead zones by what a value of each group would take."""
        axes = self._axes
        tensor = np.arange(len(flags))
        members = np.stack([m for _, m, _ in ways])[flags, tensor]
        universes = np.stack([u for _, _, u in ways])[flags, tensor]
        # A sign, and the cell next to the dead zone.
        others = 1 + np.log2((members.sum(axis=1) + 1) / (first_cells + 1))
        some = np.maximum(members, 0.5)
        # What it takes to be kept, less what it takes not to be.
        bits = np.log2(np.maximum(universes - some, 0.5) / some)
        nowhere = np.log2(np.maximum(self._sizes, 2))
        bits = np.concatenate([nowhere[:, None], bits], axis=1) + others[:, None]
        squares = np.maximum(ENERGY_PER_BIT * bits + _CELL_ERROR, 0)
        zones = np.clip(np.sqrt(squares), _SMALLEST_ZONE, _LARGEST_ZONE)
        by_row = (flags & ROWS)[axes.tensor_of_row] > 0
        by_column = (flags & COLUMNS)[axes.tensor_of_column] > 0
        return Zones(
            _adding(_classes(kept[0]), by_row),
            _adding(_classes(kept[1]), by_column),
            (zones * self._fineness).astype(np.float32),
        )


def _slope(reach: Reach, step: float, kept: int) -> float:
    """From how many fewer values a larger step keeps; each then takes somewhat more bits."""
    fewer = int(np.count_nonzero(reach.steps >= np.float32(step * 2**_OCTAVES)))
    values = float(np.log2((fewer + 1) / (kept + 1))) / _OCTAVES
    return min(_BITS_BY_VALUES * values, 0.0) - _FEWER_CELLS


def _adding(classes: NDArray[np.int32], used: Bools) -> NDArray[np.int32]:
    nothing = np.int32(-2 * MAX_CLASS)
    return np.where(used, np.where(classes > 0, classes, nothing), 1).astype(np.int32)


def _classes(counts: Ints) -> NDArray[np.int32]:
    return np.minimum(bit_length(counts), MAX_CLASS).astype(np.int32)


def _histogram(
    owners: Ints, classes: NDArray[np.int32], tensors: int, weights: Ints | None = None
) -> Ints:
    """How many of each class each tensor has, or the sum of their weights."""
    width = MAX_CLASS + 1
    found = np.bincount(owners * width + classes, weights, minlength=tensors * width)
    shaped: Ints = found.reshape(tensors, width).astype(np.int64)
    return shaped


def _map_bits(histogram: Ints) -> Doubles:
    """Bits of the class maps of each tensor."""
    at_least = np.cumsum(histogram[:, ::-1], axis=1)[:, ::-1]
    counts = 8.0 * ((at_least[:, 1:] > 0) * (1 + (at_least[:, 1:] > 0x7F))).sum(axis=1) + 8
    bits: Doubles = entropy(at_least[:, 1:], at_least[:, :-1]).sum(axis=1) + counts
    return bits


def _varint_bits(members: Ints, universes: Ints) -> Doubles:
    sizes = 1 + (members > 0x7F) + (members > 0x3FFF)
    bits: Doubles = 8.0 * (sizes * (universes > 0)).sum(axis=-1) - 8
    return bits
