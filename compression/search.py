"""The step that fills a byte budget, by the exact size of what would be sent.

The rate model proposes, the exact size corrects it. What is a few per cent over loses the values
that earn the least for their bits; what is over because of ties loses as many as it must.
"""

from __future__ import annotations

import numpy as np

from compression.quantise import DEAD_ZONE_UNIT, LARGEST_FLOAT, quantise
from compression.rate import RateModel
from compression.segments import Floats, Ints, Segments
from compression.sparse import Body, layer_counts

_ENOUGH = 0.985  # of the budget
_AIM = 0.993
_TRIMMABLE = 1.04
_PROPOSALS = 8
_TRIMS = 32


class Proposer:
    """Bodies for one update, by step."""

    def __init__(self, values: Floats, segments: Segments, shared: Ints | None) -> None:
        self._values = values
        self._segments = segments
        self._shared = shared
        self._magnitudes = np.abs(values)
        sent = self._magnitudes if shared is None else self._magnitudes[shared]
        counts = segments.sizes if shared is None else layer_counts(shared, segments)
        self.model = RateModel(sent, counts, shared=shared is not None)

    def at(self, step: float) -> Body:
        """What this step would send; the step must be a float32 value."""
        zones = self.model.dead_zones(step)
        indices = self._shared
        if indices is None:
            parts = np.split(self._magnitudes, self._segments.starts[1:])
            thresholds = np.minimum(zones / DEAD_ZONE_UNIT * step, LARGEST_FLOAT).tolist()
            indices = np.concatenate(
                [
                    np.flatnonzero(part >= threshold) + start
                    for part, threshold, start in zip(
                        parts, thresholds, self._segments.starts.tolist(), strict=True
                    )
                ]
            )
        return self._body(indices, zones, step)

    def trimmed(self, body: Body, budget_bytes: int) -> Body | None:
        """The body without the values that earn least, cut to the budget; None if none is left.

        Values are ranked by ``|v|/θ``, the root of energy per bit; ties keep the lower index.
        """
        q = body.quantised
        zones = np.repeat(q.dead_zones, q.counts)
        order = np.argsort(-(self._magnitudes[q.indices] / zones), kind="stable")
        fits, over = 0, len(order)
        fits_bytes, over_bytes = self._body(q.indices[:0], q.dead_zones, q.step).nbytes, body.nbytes
        best = None
        for attempt in range(_TRIMS):
            if over - fits <= 1 or fits_bytes >= _ENOUGH * budget_bytes:
                break
            if best is None:  # values near the threshold cost less than the average one
                dropped = int(over * (1 - budget_bytes / over_bytes) * 1.1 * 2**attempt) + 1
                guess = over - dropped if over - dropped > fits else (fits + over) // 2
            elif attempt % 3 == 2:  # interpolation may creep along a curve
                guess = (fits + over) // 2
            else:
                share = (budget_bytes - fits_bytes) / max(over_bytes - fits_bytes, 1)
                guess = fits + int(0.995 * share * (over - fits))
            guess = min(max(guess, fits + 1), over - 1)
            tried = self._body(np.sort(q.indices[order[:guess]]), q.dead_zones, q.step)
            if tried.nbytes <= budget_bytes:
                fits, fits_bytes, best = guess, tried.nbytes, tried
            else:
                over, over_bytes = guess, tried.nbytes
        return best

    def _body(self, indices: Ints, zones: Ints, step: float) -> Body:
        counts = layer_counts(indices, self._segments)
        quantised = quantise(self._values, indices, counts, zones, step)
        return Body(quantised, self._segments, self._shared)


def fill(proposer: Proposer, budget_bytes: int, step: float | None) -> Body | None:
    """The body that uses the budget best, or None where the budget leaves room for no value.

    Args:
        proposer: of the update.
        budget_bytes: for the body alone.
        step: fixed by the caller, or None to search.
    """
    if step is not None:
        body = proposer.at(float(np.float32(step)))
        return body if body.nbytes <= budget_bytes else _cut(proposer, body, budget_bytes)
    steps, bits = proposer.model.curve()
    target = float(np.log2(max(8 * budget_bytes * _AIM, 1)))
    under: Body | None = None
    over: Body | None = None
    # Log2 of (step, bits) at the nearest proposals below and above the right step.
    low, high = (float(steps[0]), np.inf), (float(steps[-1]), -np.inf)
    place = float(np.interp(-target, -bits, steps))
    for _ in range(_PROPOSALS):
        body = proposer.at(_short_step(place))
        came = (place, float(np.log2(8 * body.nbytes)))
        if body.nbytes > budget_bytes:
            low = came
            over = body if over is None or body.nbytes < over.nbytes else over
            if body.nbytes <= _TRIMMABLE * budget_bytes:
                break
        else:
            high = came
            under = body if under is None or body.nbytes > under.nbytes else under
            if place <= steps[0] or (body.kept and body.nbytes >= _ENOUGH * budget_bytes):
                return body
        if over and under:
            share = (low[1] - target) / (low[1] - high[1])
            place = low[0] + min(max(share, 0.05), 0.95) * (high[0] - low[0])
        else:
            shift = came[1] - float(np.interp(place, steps, bits))
            place = float(np.interp(shift - target, -bits, steps))
    cut = _cut(proposer, over, budget_bytes) if over else None
    found = [body for body in (under, cut) if body is not None]
    best = max(found, key=lambda body: (body.kept > 0, body.nbytes), default=None)
    if best and not best.kept and proposer.at(_short_step(float(steps[0]))).kept:
        return None
    return best


def _cut(proposer: Proposer, body: Body, budget_bytes: int) -> Body | None:
    """Over shared positions nothing can be left out."""
    return None if body.shared is not None else proposer.trimmed(body, budget_bytes)


def _short_step(exponent: float) -> float:
    """``2**exponent`` with 8 bits of mantissa.

    So that platforms whose logarithms differ in the last place still write the same bytes.
    """
    bits = np.float32(np.exp2(exponent)).view(np.uint32) & np.uint32(0xFFFF8000)
    return float(np.uint32(bits).view(np.float32))
