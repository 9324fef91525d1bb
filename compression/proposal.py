"""Bodies for one update: what a given step or threshold would send, with its exact size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compression.affine import affine_units
from compression.bits import Bools
from compression.candidates import Axes, Candidates
from compression.draft import Draft, Drafter, Reach, Zones
from compression.packet import refusal
from compression.placement import LEAST_KEPT, Placement, place
from compression.quantise import (
    DEAD_ZONE_UNIT,
    LARGEST_FLOAT,
    MAX_CELL,
    MAX_DEAD_ZONE,
    Quantised,
    cells_of,
    offsets_of,
    restored,
    zero_points,
)
from compression.rate import RateModel
from compression.segments import Floats, Ints, Values
from compression.sparse import Body
from compression.units import Units, join
from compression.wishes import Wishes

# Candidates reach this far below the thresholds at hand, for the drafts to come.
_MARGIN = 0.92
# ... unless rows with more than this share of all values would have to reach further.
_SHORT = 0.01


@dataclass(frozen=True)
class Cut:
    """What is kept, before it is quantised.

    Attributes:
        indices: in the flat vector, ascending.
        magnitudes: of each value.
        zones: the dead zone of each value in 1/64.
        step: of the quantiser.
        flags: ROWS and COLUMNS of each tensor; None to choose them.
    """

    indices: Ints
    magnitudes: Floats
    zones: Ints
    step: float
    flags: Ints | None = None

    def only(self, places: Ints) -> Cut:
        """These of its values, at ascending places."""
        return replace(
            self,
            indices=self.indices[places],
            magnitudes=self.magnitudes[places],
            zones=self.zones[places],
        )


class Proposer:
    """Bodies for one update.

    Args:
        values: of the covered parameters; scaled in place where there are gains.
        shared: ascending positions that both ends know, or None.
        wishes: what else is to be honoured.
    """

    def __init__(self, values: Values, shared: Ints | None, wishes: Wishes) -> None:
        self.segments = segments = values.segments
        self.shared = shared
        self.wishes = wishes
        self._scale(values.magnitudes, wishes)
        self._values = values
        self.magnitudes = values.magnitudes
        self.largest = float(self.magnitudes.max(initial=0.0))
        sent = self.magnitudes if shared is None else self.magnitudes[shared]
        counts = segments.sizes if shared is None else self.tensor_counts(shared)
        settings = wishes.settings
        self.model = RateModel(sent, counts, shared=shared is not None, fineness=settings.fineness)
        self._axes = Axes.of(segments)
        self._drafter = Drafter(
            self._axes,
            segments.sizes,
            fineness=settings.fineness,
            structured=settings.structured,
        )
        self._alone = wishes.alone(segments)
        self._floor_thresholds = self._thresholds_of_floors()
        self._candidates: Candidates | None = None
        self._zones: Zones | None = None
        self._narrowest = np.zeros(0, np.float32)
        self._reach: Reach | None = None

    def flat_zones(self, zones: NDArray[np.float64]) -> Zones:
        """One dead zone for each tensor, in steps."""
        return Zones.flat(self._axes, zones)

    def draft(self, step: float, zones: Zones) -> Draft:
        """What the step keeps under these zones."""
        if zones is not self._zones:
            self._zones, self._narrowest, self._reach = zones, zones.of_rows(self._axes), None
        candidates = self._found(self._narrowest * np.float32(step))
        if self._reach is None:
            self._reach = Reach.of(candidates, zones)
        return self._drafter.draft(candidates, step, self._reach, self._floor_thresholds)

    def drafted(self, draft: Draft) -> Cut:
        """The cut that a draft stands for."""
        if self._candidates is None:
            raise AssertionError("a draft is made of candidates")
        magnitudes = self._candidates.magnitudes[draft.kept]
        zones = _within(magnitudes, (draft.wanted * DEAD_ZONE_UNIT).astype(np.int64), draft.step)
        indices = self._candidates.indices[draft.kept]
        return Cut(indices, magnitudes, zones, draft.step, draft.flags)

    def above(self, threshold: float, step: float) -> Cut:
        """Everything of at least this magnitude, or all shared positions."""
        zone = int(min(threshold / step * DEAD_ZONE_UNIT, MAX_DEAD_ZONE))
        if self.shared is not None:
            none = np.zeros(len(self.shared), np.int64)
            return Cut(self.shared, self.magnitudes[self.shared], none, step)
        limits = np.minimum(np.full(len(self.segments.sizes), threshold), self._floor_thresholds)
        rows = limits[self._axes.tensor_of_row].astype(np.float32)
        self._candidates = self._zones = None
        candidates = self._found(rows)
        kept = candidates.magnitudes >= np.repeat(limits, candidates.counts)
        magnitudes = candidates.magnitudes[kept]
        zones = _within(magnitudes, np.full(len(magnitudes), zone), step)
        return Cut(candidates.indices[kept], magnitudes, zones, step)

    def body(self, cut: Cut) -> Body:
        """The cut as it would be sent."""
        tensor_counts = self.tensor_counts(cut.indices)
        apart = self._axes.rows * self._axes.columns > 1
        apart &= tensor_counts >= LEAST_KEPT if cut.flags is None else cut.flags > 0
        joined = join(
            tensor_counts.tolist(), self.segments.sizes.tolist(), (self._alone | apart).tolist()
        )
        units = Units.of(self.segments, joined)
        counts = np.bincount(units.members, weights=tensor_counts, minlength=len(units))
        counts = counts.astype(np.int64)
        dead_zones = np.zeros(len(units), np.int64)
        filled = np.flatnonzero(counts)
        if len(filled):
            firsts = (np.cumsum(counts) - counts)[filled]
            dead_zones[filled] = np.minimum.reduceat(cut.zones, firsts)
        if self.shared is not None:
            return Body(self._quantised(units, counts, dead_zones, cut, None), None)
        flags = None
        if not self.wishes.settings.structured:
            flags = np.zeros(len(units), np.int64)
        elif cut.flags is not None:
            flags = np.where(counts > 0, cut.flags[~joined], 0)
        placement = place(units, counts, cut.indices, flags)
        return Body(self._quantised(units, counts, dead_zones, cut, placement), placement)

    def worth(self, body: Body) -> float:
        """Squared error that a body takes away, weighted as the gains weigh it."""
        indices = body.quantised.indices
        sizes = self.magnitudes[indices].astype(np.float64)
        values = np.where(self._values.negative(indices), -sizes, sizes)
        return float((values**2 - (values - restored(body.quantised)) ** 2).sum())

    def tensor_counts(self, indices: Ints) -> Ints:
        """How many of the ascending flat ``indices`` lie in each tensor."""
        starts = self.segments.starts
        ends = np.searchsorted(indices, starts + self.segments.sizes)
        return ends - np.searchsorted(indices, starts)

    def filled(self, owner: int) -> int:
        """Values of a layer that are not 0."""
        own = np.flatnonzero(self.segments.owners == owner).tolist()
        return sum(int(np.count_nonzero(self._part(number))) for number in own)

    def must_keep(self, cut: Cut) -> Bools:
        """Which of its values are among the largest of a layer with a floor."""
        limits = np.repeat(self._floor_thresholds, self.tensor_counts(cut.indices))
        return np.isfinite(limits) & (cut.magnitudes >= limits)

    def _quantised(
        self, units: Units, counts: Ints, dead_zones: Ints, cut: Cut, placement: Placement | None
    ) -> Quantised:
        settings = self.wishes.settings
        kept = np.where(self._values.negative(cut.indices), -cut.magnitudes, cut.magnitudes)
        unit = np.repeat(np.arange(len(units)), counts)
        zones = dead_zones[unit] if placement is None else placement.zones(dead_zones, counts)
        affine = np.zeros(len(units), np.bool_)
        if settings.affine and settings.value_bits is None:
            affine = affine_units(kept, counts, zones, cut.step)
            zones = np.where(affine[unit], 0, zones)
        points = zero_points(kept, counts, affine)
        cells, places = cells_of(kept, zones, points[unit], affine[unit], cut.step)
        most = MAX_CELL if settings.value_bits is None else 2 ** (settings.value_bits - 1) - 1
        places = np.clip(places, 0, 1) if most == 0 else places
        cells = np.minimum(cells, most)
        return Quantised(
            step=cut.step,
            units=units,
            counts=counts,
            dead_zones=np.where(affine, 0, dead_zones),
            offsets=offsets_of(cells, places, unit, affine),
            affine=affine,
            zero_points=points,
            gains=self._unit_gains(units, counts),
            indices=cut.indices,
            negative=np.signbit(kept) & ~affine[unit],
            cells=cells,
            zones=zones,
        )

    def _found(self, limits: Floats) -> Candidates:
        """Candidates that reach down to about these magnitudes, by row."""
        axes = self._axes
        if self._candidates is not None:
            short = limits < self._candidates.limits
            sizes = (axes.columns * axes.depths)[axes.tensor_of_row]
            if sizes[short].sum() <= _SHORT * sizes.sum():
                return self._candidates
        floors = self._floor_thresholds[axes.tensor_of_row]
        reach = np.minimum(limits * np.float32(_MARGIN), np.minimum(floors, LARGEST_FLOAT))
        self._candidates = self._reach = None  # so that both are not there at once
        self._candidates = Candidates.above(
            self.magnitudes, self.segments, axes, reach.astype(np.float32)
        )
        return self._candidates

    def _unit_gains(self, units: Units, counts: Ints) -> dict[int, Ints]:
        return {
            int(units.members[number]): gain
            for number, gain in self.wishes.gains.items()
            if counts[units.members[number]]
        }

    def _scale(self, magnitudes: Floats, wishes: Wishes) -> None:
        for number, gain in wishes.gains.items():
            start, size = int(self.segments.starts[number]), int(self.segments.sizes[number])
            rows = magnitudes[start : start + size].reshape(len(gain), -1)
            with np.errstate(over="ignore"):
                rows *= np.exp2(gain.astype(np.float32))[:, None]
            if not np.isfinite(rows).all():
                raise refusal(
                    f"values of {self.segments.parameters[number].name!r} that a gain of "
                    f"{2 ** int(gain.max())} leaves finite",
                    "larger ones",
                    "lower the weight of the tensor",
                )

    def _thresholds_of_floors(self) -> NDArray[np.float64]:
        """For each tensor, the magnitude from which its layer's floor demands a value."""
        thresholds = np.full(len(self.segments.sizes), np.inf)
        for owner, least in self.wishes.floors.items():
            own = np.flatnonzero(self.segments.owners == owner)
            parts = [self._part(number) for number in own.tolist()]
            magnitudes = np.concatenate([np.zeros(0, np.float32), *parts])
            count = min(least, int(np.count_nonzero(magnitudes)))
            if count:
                thresholds[own] = np.partition(magnitudes, -count)[-count]
        return thresholds

    def _part(self, number: int) -> Floats:
        start = int(self.segments.starts[number])
        return self.magnitudes[start : start + int(self.segments.sizes[number])]


def _within(magnitudes: Floats, zones: Ints, step: float) -> Ints:
    """Zones, narrowed for the values that only a floor keeps."""
    below = magnitudes < zones * (step / DEAD_ZONE_UNIT)
    if not below.any():
        return zones
    reach = np.floor(magnitudes[below] / step * DEAD_ZONE_UNIT)
    zones = zones.copy()
    zones[below] = reach.astype(np.int64)
    return zones
