"""Bodies for one update: what a given step or threshold would send, with its exact size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compression.affine import affine_units
from compression.axes import Axes, counts_between
from compression.bits import Bools
from compression.candidates import Candidates
from compression.class_errors import too_far_off
from compression.draft import Draft, Drafter, Reach
from compression.packet import refusal
from compression.placement import place
from compression.quantise import (
    DEAD_ZONE_UNIT,
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
from compression.units import Content, Units, contents, join
from compression.ways import LEAST_KEPT
from compression.wishes import Wishes
from compression.zones import Zones

# Candidates reach this far below the thresholds at hand, for the drafts to come, unless rows with
# more than a share of all values would have to reach further. Few values cost little, and each of
# them counts.
_MARGIN = {"fast": 0.85, "thorough": 0.62}  # zones change once, or in every turn
_SHORT = {"fast": 0.05, "thorough": 0.15}
_SHORT_FEW, _FEW = 0.01, 1 << 20


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
        self.largest = float(self.magnitudes.max(initial=0.0)) if wishes.gains else values.largest
        settings = wishes.settings
        if shared is None:
            sent, counts, largest = self.magnitudes, segments.sizes, self.largest
        else:
            sent, counts = self.magnitudes[shared], self.tensor_counts(shared)
            largest = float(sent.max(initial=0.0))
        self.model = RateModel(
            sent, counts, largest, shared=shared is not None, fineness=settings.fineness
        )
        self._axes = Axes.of(tensor.shape for tensor in segments.parameters)
        self._drafter = Drafter(
            self._axes, fineness=settings.fineness, structured=settings.structured
        )
        few = len(self.magnitudes) < _FEW
        self._margin = _MARGIN[settings.effort]
        self._short = _SHORT_FEW if few else _SHORT[settings.effort]
        self._alone = wishes.alone(segments)
        self._gains = wishes.unit_gains(segments).tolist()
        bits = settings.value_bits
        self._most = MAX_CELL if bits is None else 2 ** (bits - 1) - 1
        self._floor_thresholds = self._thresholds_of_floors()
        self._candidates: Candidates | None = None
        self._zones: Zones | None = None
        self._narrowest = self._limits = np.zeros(0, np.float32)
        self._reach: Reach | None = None

    def flat_zones(self, zones: NDArray[np.float64]) -> Zones:
        """One dead zone for each tensor, in steps."""
        return Zones.flat(self._axes, zones)

    def draft(self, step: float, zones: Zones) -> Draft:
        """What the step keeps under these zones."""
        if zones is not self._zones:
            self._zones, self._narrowest, self._reach = zones, zones.of_rows(self._axes), None
        candidates = self._candidates
        if candidates is None or self._lack(self._narrowest * np.float32(step)):
            # The first draft shows where values crowd; its candidates serve no other.
            margin = 1.0 if candidates is None else self._margin
            self._limits = self._narrowest * np.float32(margin * step)
            candidates = self._found(zones, margin * step)
        if self._reach is None:
            self._reach = Reach.of(candidates, zones)
        return self._drafter.draft(candidates, step, self._reach, self._floor_thresholds)

    def nudged(self, draft: Draft, step: float, bits: float) -> Draft:
        """The last draft with a step hardly different, which has about so many bits."""
        if self._candidates is None or self._reach is None:
            raise AssertionError("there is a draft already")
        kept = self._drafter.kept(self._candidates, step, self._reach, self._floor_thresholds)
        _, _, wanted = self._reach.of_kept(self._candidates, kept)
        return replace(draft, step=step, kept=kept, wanted=wanted, bits=bits)

    def drafted(self, draft: Draft) -> Cut:
        """The cut that a draft stands for."""
        if self._candidates is None:
            raise AssertionError("a draft is made of candidates")
        magnitudes = self._candidates.magnitudes[draft.kept]
        zones = _within(magnitudes, (draft.wanted * DEAD_ZONE_UNIT).astype(np.int64), draft.step)
        indices = self._candidates.indices[draft.kept].astype(np.int64)
        return Cut(indices, magnitudes, zones, draft.step, draft.flags)

    def above(self, threshold: float, step: float) -> Cut:
        """Everything of at least this magnitude, or all shared positions."""
        zone = int(min(threshold / step * DEAD_ZONE_UNIT, MAX_DEAD_ZONE))
        if self.shared is not None:
            none = np.zeros(len(self.shared), np.int64)
            return Cut(self.shared, self.magnitudes[self.shared], none, step)
        candidates = self._found(self.flat_zones(np.full(len(self._axes), threshold)), 1.0)
        magnitudes = candidates.magnitudes
        zones = _within(magnitudes, np.full(len(magnitudes), zone), step)
        return Cut(candidates.indices.astype(np.int64), magnitudes, zones, step)

    def body(self, cut: Cut) -> Body:
        """The cut as it would be sent."""
        tensor_counts = self.tensor_counts(cut.indices)
        wanted = tensor_counts >= LEAST_KEPT if cut.flags is None else cut.flags > 0
        apart = self._axes.several & wanted
        joined = join(self._held(cut, tensor_counts, ~(self._alone | apart)), self._gains)
        units = Units.of(self.segments, joined)
        counts = np.bincount(units.members, weights=tensor_counts, minlength=len(units))
        counts = counts.astype(np.int64)
        dead_zones = np.zeros(len(units), np.int64)
        filled = np.flatnonzero(counts)
        if len(filled):
            firsts = (np.cumsum(counts) - counts)[filled]
            dead_zones[filled] = np.minimum.reduceat(cut.zones, firsts)
        if self.shared is not None:
            zones = np.repeat(dead_zones, counts)
            return Body(self._quantised(units, counts, dead_zones, cut, zones), None)
        flags = None
        if not self.wishes.settings.structured:
            flags = np.zeros(len(units), np.int64)
        elif cut.flags is not None:
            flags = np.where(counts > 0, cut.flags[~joined], 0)
        placement = place(units, counts, cut.indices, flags)
        distances = cut.magnitudes / np.float32(cut.step)
        if off := too_far_off(placement, units.sizes, counts, dead_zones, distances):
            flags = placement.flags.copy()
            flags[off] = 0
            placement = place(units, counts, cut.indices, flags)
        zones = placement.zones(dead_zones, counts)
        return Body(self._quantised(units, counts, dead_zones, cut, zones), placement)

    def worth(self, body: Body) -> float:
        """Squared error that a body takes away, weighted as the gains weigh it."""
        indices = body.quantised.indices
        sizes = self.magnitudes[indices].astype(np.float64)
        values = np.where(self._values.negative(indices), -sizes, sizes)
        return float((values**2 - (values - restored(body.quantised)) ** 2).sum())

    def tensor_counts(self, indices: Ints) -> Ints:
        """How many of the ascending flat ``indices`` lie in each tensor."""
        return counts_between(indices, self.segments.starts + self.segments.sizes)

    def filled(self, owner: int) -> int:
        """Values of a layer that are not 0."""
        own = np.flatnonzero(self.segments.owners == owner).tolist()
        return sum(int(np.count_nonzero(self._part(number))) for number in own)

    def must_keep(self, cut: Cut) -> Bools:
        """Which of its values are among the largest of a layer with a floor."""
        limits = np.repeat(self._floor_thresholds, self.tensor_counts(cut.indices))
        return np.isfinite(limits) & (cut.magnitudes >= limits)

    def _held(self, cut: Cut, counts: Ints, examined: Bools) -> list[Content | None]:
        """What each examined tensor would hold as a unit of its own, with signs."""
        places = np.flatnonzero(np.repeat(examined, counts))
        sizes, signed = cut.magnitudes[places], np.zeros(len(places), np.bool_)
        cells, _ = cells_of(sizes, cut.zones[places], sizes, signed, cut.step)
        cells = np.minimum(cells, self._most)
        universes = self.segments.sizes if self.shared is None else counts
        distances = sizes / np.float32(cut.step)
        return contents(universes.tolist(), counts, cells, distances, examined)

    def _quantised(
        self, units: Units, counts: Ints, dead_zones: Ints, cut: Cut, zones: Ints
    ) -> Quantised:
        settings = self.wishes.settings
        negative = self._values.negative(cut.indices)
        kept = np.where(negative, -cut.magnitudes, cut.magnitudes)
        unit = np.repeat(np.arange(len(units)), counts)
        affine = np.zeros(len(units), np.bool_)
        if settings.affine and settings.value_bits is None:
            affine = affine_units(kept, counts, zones, cut.step)
            if affine.any():
                zones = np.where(affine[unit], 0, zones)
                negative &= ~affine[unit]
        points = zero_points(kept, counts, affine)
        cells, places = cells_of(kept, zones, points[unit], affine[unit], cut.step)
        places = np.clip(places, 0, 1) if self._most == 0 else places
        cells = np.minimum(cells, self._most)
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
            negative=negative,
            cells=cells,
            zones=zones,
        )

    def _found(self, zones: Zones, step: float) -> Candidates:
        """All that reaches its zone under this step, or the floor of its layer."""
        self._candidates = self._reach = None  # so that both are not there at once
        floors = self._floor_thresholds.astype(np.float32)
        self._candidates = Candidates.above(self.magnitudes, self._axes, zones, step, floors)
        return self._candidates

    def _lack(self, limits: Floats) -> bool:
        """Whether candidates do not reach down to these magnitudes in too many rows."""
        sizes = (self._axes.columns * self._axes.depths)[self._axes.grid_of_row]
        return bool(sizes[limits < self._limits].sum() > self._short * sizes.sum())

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
