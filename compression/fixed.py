"""The search where something is fixed: the positions, the density, or the bits of a value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compression.proposal import Cut, Proposer
from compression.quantise import LARGEST_FLOAT, SMALLEST_STEP
from compression.sparse import Body
from compression.trim import ENOUGH, fitting, short_step, trimmed

_AIM = 0.994  # of the budget
_TRIMMABLE = 1.04
_PROPOSALS = 14
# Where cells end, as shares of the way from the threshold to the largest value.
_CLIPS = tuple(0.9**power for power in range(30))
# A fixed density is never quantised more finely than this against the largest value.
_STEP_RANGE = 2.0**19


def at_shared_positions(proposer: Proposer, budget_bytes: int) -> Body | None:
    """All shared positions, at the finest step that fits."""
    steps, bits = proposer.model.curve(np.zeros(len(proposer.segments.sizes)))
    target = float(np.log2(max(8 * budget_bytes * _AIM, 1)))

    def guess(place: float, came: float) -> float:
        shift = came - float(np.interp(place, steps, bits))
        return float(np.interp(shift - target, -bits, steps))

    return _search(
        lambda place: proposer.above(0.0, short_step(place)),
        proposer,
        budget_bytes,
        span=(float(steps[0]), float(steps[-1])),
        place=float(np.interp(-target, -bits, steps)),
        guess=guess,
    )


def of_density(proposer: Proposer, budget_bytes: int, largest: float) -> Body | None:
    """The largest values, as many as the density says, as finely as the budget allows."""
    density = proposer.wishes.settings.density or 1.0
    threshold = _kth(proposer, density)
    finest = max(largest / _STEP_RANGE, SMALLEST_STEP, threshold / 2**17)
    coarsest = min(2 * largest, LARGEST_FLOAT)
    span = float(np.log2(finest)), float(np.log2(coarsest))
    return _search(
        lambda place: _no_more(proposer, density, proposer.above(threshold, short_step(place))),
        proposer,
        budget_bytes,
        span=span,
        place=min(max(float(np.log2(max(threshold, SMALLEST_STEP))), span[0]), span[1]),
    )


def of_value_bits(proposer: Proposer, budget_bytes: int) -> Body | None:
    """As many of the largest values as fit, with so many bits each."""
    settings = proposer.wishes.settings
    if proposer.shared is not None:
        return fitting(proposer, _clipped(proposer, 0.0), budget_bytes)
    if settings.density is not None:
        threshold = _kth(proposer, settings.density)
        cut = _no_more(proposer, settings.density, _clipped(proposer, threshold))
        return fitting(proposer, cut, budget_bytes)
    total = len(proposer.magnitudes)
    low = float(np.log2(1 / max(total, 2)))
    return _search(
        # Fewer values with a higher place, as with a larger step.
        lambda place: _clipped(proposer, _kth(proposer, float(np.exp2(-place)))),
        proposer,
        budget_bytes,
        span=(0.0, -low),
        place=min(max(-np.log2(8 * budget_bytes / (8 * max(total, 1)) + 1e-12), 0.0), -low),
    )


def _clipped(proposer: Proposer, threshold: float) -> Cut:
    """Everything above the threshold, with the step of least error for the cells that there are."""
    cells = 2 ** ((proposer.wishes.settings.value_bits or 1) - 1)
    sizes = proposer.magnitudes
    if proposer.shared is not None:
        sizes = sizes[proposer.shared]
    kept = np.sort(sizes[sizes >= np.float32(threshold)]).astype(np.float64)
    if not len(kept):
        return proposer.above(threshold, SMALLEST_STEP)
    best, least = SMALLEST_STEP, np.inf
    above = kept[:: len(kept) // 4096 | 1] - threshold
    for share in _CLIPS:
        step = max(share * float(kept[-1] - threshold) / cells, threshold / 2**16, SMALLEST_STEP)
        cell = np.clip(np.floor(above / step), 0, cells - 1)
        off = above - (cell + 0.5) * step
        first = cell == 0
        off[first] -= off[first].mean() if first.any() else 0.0  # the offset takes the mean
        error = float((off**2).sum())
        if error < least:
            best, least = step, error
    if cells == 1:
        # One level a unit: its mean must lie within the one cell.
        best = max(float(kept.max()) - threshold, threshold / 2**16, SMALLEST_STEP)
    return proposer.above(threshold, float(np.float32(min(best, LARGEST_FLOAT))))


def _no_more(proposer: Proposer, density: float, cut: Cut) -> Cut:
    """The cut without surplus values as small as its smallest; of those, lower indices stay.

    What a floor demands stays as well, and does not count.
    """
    free = ~proposer.must_keep(cut)
    surplus = int(free.sum()) - _count(proposer, density)
    if surplus <= 0:
        return cut
    sizes = proposer.magnitudes[cut.indices]
    ties = np.flatnonzero(free & (sizes == sizes[free].min()))
    kept = np.delete(np.arange(len(sizes)), ties[-surplus:])
    return cut.only(kept)


def _count(proposer: Proposer, density: float) -> int:
    """How many values a share of all is, of those that are not 0."""
    sizes = proposer.magnitudes
    return min(max(1, round(density * len(sizes))), int(np.count_nonzero(sizes)))


def _kth(proposer: Proposer, density: float) -> float:
    """The magnitude that this share of all values reaches."""
    sizes, count = proposer.magnitudes, _count(proposer, density)
    return float(np.partition(sizes, -count)[-count])


def _search(
    cut_at: Callable[[float], Cut],
    proposer: Proposer,
    budget_bytes: int,
    *,
    span: tuple[float, float],
    place: float,
    guess: Callable[[float, float], float] | None = None,
) -> Body | None:
    """The largest body within the budget, over places of which higher ones send less."""
    target = float(np.log2(max(8 * budget_bytes * _AIM, 1)))
    under: Body | None = None
    over: Cut | None = None
    over_bytes = 0
    # Log2 of (step, bits) at the nearest proposals below and above the right step.
    low, high = (span[0], np.inf), (span[1], -np.inf)
    move = 0.05
    for turn in range(_PROPOSALS):
        cut = cut_at(place)
        body = proposer.body(cut)
        came = (place, float(np.log2(8 * body.nbytes)))
        if body.nbytes > budget_bytes:
            low = came
            if over is None or body.nbytes < over_bytes:
                over, over_bytes = cut, body.nbytes
            if proposer.shared is None and body.nbytes <= _TRIMMABLE * budget_bytes:
                break
        else:
            high = came
            under = body if under is None or body.nbytes > under.nbytes else under
            if place <= span[0] or (body.kept and body.nbytes >= ENOUGH * budget_bytes):
                return body
        if over and under:
            # In the middle from time to time, as bits may jump.
            share = 0.5 if turn % 3 == 2 else (low[1] - target) / (low[1] - high[1])
            place = low[0] + min(max(share, 0.05), 0.95) * (high[0] - low[0])
        elif guess is not None:
            # By the model, but further each time, for it may be far off.
            away = guess(*came) - place
            place += max(away, move) if over else min(away, -move)
            place, move = min(max(place, span[0]), span[1]), 2 * move
        else:
            place = (place + (span[1] if over else span[0])) / 2
            place = span[0] if place - span[0] < 0.05 else place
    if under is None and over is not None:
        coarsest = proposer.body(cut_at(span[1]))
        under = coarsest if coarsest.nbytes <= budget_bytes else None
    cut_body = trimmed(proposer, over, over_bytes, budget_bytes) if over else None
    found = [body for body in (under, cut_body) if body is not None]
    return max(found, key=lambda body: (body.kept > 0, body.nbytes), default=None)
