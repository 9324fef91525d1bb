"""The step that fills a byte budget, by the exact size of what would be sent.

The rate model proposes, the exact size corrects it. What is a few per cent over loses the values
that earn the least for their bits; what is over because of ties loses as many as it must.
"""

from __future__ import annotations

import numpy as np

from compression.draft import Draft
from compression.fixed import at_shared_positions, of_density, of_value_bits
from compression.nested import LEVELS
from compression.proposal import Cut, Proposer
from compression.quantise import SMALLEST_STEP
from compression.sparse import Body
from compression.trim import ENOUGH, fitting, short_step, trimmed

# Of the budget; lower where a second body would take longer than it is worth.
_AIM = {"fast": 0.991, "thorough": 0.994}
_BODIES = 4
# A body so little over its budget is trimmed where a draft tells sizes no better than that.
_TRIMMABLE, _FEW = 1.04, 1 << 15
_DRAFTS = 10
_TURNS = {"fast": 1, "thorough": 3}
_NEAR, _NEAR_FEW = 0.005, 0.012  # in log2 of the bits
_NUDGE = 0.02  # so near, no other draft is needed to tell how many bits the next step has
_LARGEST_MOVE = 0.5  # in log2 of the step


def fill(proposer: Proposer, budget_bytes: int, step: float | None) -> Body | None:
    """The body that uses the budget best, or None where the budget leaves room for no value.

    Args:
        proposer: of the update.
        budget_bytes: for the body alone.
        step: fixed by the caller, or None to search.
    """
    settings = proposer.wishes.settings
    if not len(proposer.segments.sizes):
        return fitting(proposer, proposer.above(0.0, 1.0), budget_bytes)
    largest = proposer.largest
    if step is not None:
        return _fixed_step(proposer, float(np.float32(step)), budget_bytes)
    if settings.value_bits is not None and largest >= SMALLEST_STEP:
        return of_value_bits(proposer, budget_bytes)
    if settings.density is not None and largest >= SMALLEST_STEP:
        return of_density(proposer, budget_bytes, largest)
    return _joint(proposer, budget_bytes)


def _joint(proposer: Proposer, budget_bytes: int) -> Body | None:
    """Steps and dead zones together: drafts come near, exact bodies settle it."""
    if proposer.shared is not None:
        return at_shared_positions(proposer, budget_bytes)
    aim = _AIM[proposer.wishes.settings.effort]
    wanted = 8 * budget_bytes * aim
    drafts = _Drafts(proposer, wanted)
    best: Body | None = None
    over: tuple[Cut, int] | None = None
    trims: list[Body] = []
    for _ in range(_BODIES):
        draft = drafts.of_bits(wanted)
        cut = proposer.drafted(draft)
        body = proposer.body(cut)
        if budget_bytes < body.nbytes:
            over = (cut, body.nbytes) if over is None or body.nbytes < over[1] else over
            if body.nbytes <= _TRIMMABLE * budget_bytes and body.kept <= _FEW:
                less = trimmed(proposer, cut, body.nbytes, budget_bytes)
                if less is not None and int(body.quantised.cells.max(initial=0)) >= LEVELS:
                    # Wider tails made it jump over the budget; a coarser step may leave less error.
                    trims.append(less)
                else:
                    body = less or body
        if body.nbytes <= budget_bytes:
            best = body if best is None or body.nbytes > best.nbytes else best
            enough = body.kept and body.nbytes >= ENOUGH * budget_bytes
            if enough or drafts.at_finest:
                break
        # A draft of so many bits came to so many: aim at what would have been right.
        wanted = aim * budget_bytes * draft.bits / body.nbytes
        del draft, cut, body  # before there are others
    if best is not None and best.kept and best.nbytes >= ENOUGH * budget_bytes:
        return max([best, *trims], key=proposer.worth) if trims else best
    if over is not None:
        # A cut of far too many values may be fuller, and yet worse.
        less = None if trims else trimmed(proposer, *over, budget_bytes)
        found = [body for body in (best, less, *trims) if body is not None]
        best = max(found, key=proposer.worth, default=None)
    elif best is None or not best.kept:
        cut = drafts.finest()
        if not len(cut.indices):
            return best
        best = trimmed(proposer, cut, proposer.body(cut).nbytes, budget_bytes)
    return best if best and best.kept else None


class _Drafts:
    """Drafts by how many bits they have.

    Under fixed dead zones a larger step keeps less, so the right one can be bracketed. Values then
    take other bits than the zones were made for; new zones follow from those, and a new step from
    them. Each turn lowers error plus bits, as in entropy-constrained quantisation (Chou,
    Lookabaugh and Gray, 1989).
    """

    def __init__(self, proposer: Proposer, wanted: float) -> None:
        self._proposer = proposer
        zones, place = proposer.model.opening(wanted)
        self._finest, self._coarsest = proposer.model.finest, proposer.model.coarsest
        if place < self._finest + 2:
            # More bits than one cell of every value takes: then more cells are wanted.
            steps, bits = proposer.model.curve(zones)
            place = float(np.interp(-np.log2(max(wanted, 1)), -bits, steps))
        self._zones = proposer.flat_zones(zones)
        self._place = self._inside(place)
        self._last: Draft | None = None
        self._slope: float | None = None
        for _ in range(_TURNS[proposer.wishes.settings.effort]):
            draft = proposer.draft(short_step(self._place), self._zones)
            self._zones = draft.zones
            self._place = self._inside(self._place + _move(draft.slope, draft, wanted))
        if draft.bits > wanted:
            # The new zones bring about half as many values too many again.
            self._place = self._inside(self._place + _move(draft.slope, draft, wanted) / 2)

    @property
    def at_finest(self) -> bool:
        """Whether no step is smaller than that of the last draft."""
        return self._place <= self._finest

    def of_bits(self, wanted: float) -> Draft:
        """A draft of about so many bits."""
        target = float(np.log2(max(wanted, 1)))
        low, high = (self._finest, np.inf), (self._coarsest, -np.inf)
        before: tuple[float, float] | None = None
        place, further = self._place, 1.0
        for turn in range(_DRAFTS):
            draft = self._at(place)
            came = place, float(np.log2(max(draft.bits, 1)))
            at_end = place <= self._finest if came[1] < target else place >= self._coarsest
            near = _NEAR if len(draft.kept) > _FEW else _NEAR_FEW
            off = abs(came[1] - target)
            if off < near or at_end or high[0] - low[0] < 2.0**-11:
                break
            if off < _NUDGE:
                slope = self._slope or draft.slope
                place = self._inside(place + _move(slope, draft, wanted))
                bits = 2 ** (came[1] + slope * (place - came[0]))
                return self._proposer.nudged(draft, short_step(place), bits)
            low, high = (came, high) if came[1] > target else (low, came)
            if np.isfinite(low[1]) and np.isfinite(high[1]) and turn % 3 == 2:
                # In the middle from time to time, as bits may jump.
                place = (low[0] + high[0]) / 2
            elif before is None or before[1] == came[1]:
                # Further each time, for the slope may be far off.
                place += further * _move(self._slope or draft.slope, draft, wanted)
                further *= 2
            else:
                self._slope = (came[1] - before[1]) / (came[0] - before[0])
                place += _move(self._slope, draft, wanted)
            margin = 0.02 * (high[0] - low[0])
            if np.isfinite(low[1]) and np.isfinite(high[1]):
                place = min(max(place, low[0] + margin), high[0] - margin)
            place = self._inside(place)
            before = came
        return draft

    def finest(self) -> Cut:
        """What the smallest step keeps."""
        return self._proposer.drafted(self._at(self._finest))

    def _at(self, place: float) -> Draft:
        """The draft at a place, which may be the one that was made last."""
        if self._last is None or place != self._place:
            self._last = self._proposer.draft(short_step(place), self._zones)
            self._place = place
        return self._last

    def _inside(self, place: float) -> float:
        return min(max(place, self._finest), self._coarsest)


def _move(slope: float, draft: Draft, wanted: float) -> float:
    """By how much log2 of the step is off, if the bits follow it so steeply."""
    off = float(np.log2(max(wanted, 1)) - np.log2(max(draft.bits, 1)))
    move = off / min(slope, -0.1)
    return min(max(move, -_LARGEST_MOVE), _LARGEST_MOVE)


def _fixed_step(proposer: Proposer, step: float, budget_bytes: int) -> Body | None:
    if proposer.shared is not None:
        return fitting(proposer, proposer.above(0.0, step), budget_bytes)
    zones = proposer.flat_zones(proposer.model.dead_zones(step))
    for _ in range(1 + _TURNS[proposer.wishes.settings.effort]):
        draft = proposer.draft(step, zones)
        zones = draft.zones
    return fitting(proposer, proposer.drafted(draft), budget_bytes)
