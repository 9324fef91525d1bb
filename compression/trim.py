"""Cutting a body that is over its budget, by what each value earns for its bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compression.bits import Bools, Ints
from compression.proposal import Cut, Proposer
from compression.quantise import SMALLEST_STEP
from compression.sparse import Body

ENOUGH = 0.986
"""Share of the budget from which no better body is looked for."""

_TRIMS = 32
_SPARE = 3  # times as many are sorted as are left out at first


def fitting(proposer: Proposer, cut: Cut, budget_bytes: int) -> Body | None:
    """The cut's body, trimmed where it is over the budget; None if nothing is left."""
    body = proposer.body(cut)
    return (
        body if body.nbytes <= budget_bytes else trimmed(proposer, cut, body.nbytes, budget_bytes)
    )


def trimmed(proposer: Proposer, cut: Cut, over_bytes: int, budget_bytes: int) -> Body | None:
    """The cut without the values that earn least, as a body; None if none is left.

    Values are ranked by ``|v|/θ``, the root of energy per bit; ties keep the lower index, and what
    a floor demands goes last. Over shared positions nothing can be left out.

    Args:
        proposer: of the update.
        cut: of which the body takes ``over_bytes``.
        over_bytes: more than ``budget_bytes``.
        budget_bytes: largest body.
    """
    if proposer.shared is not None:
        return None
    order = _Order(cut.magnitudes / np.maximum(cut.zones, 1), proposer.must_keep(cut))
    fits, over = 0, len(cut.indices)
    fits_bytes = 0
    best = None
    for attempt in range(_TRIMS):
        if over - fits <= 1 or fits_bytes >= ENOUGH * budget_bytes:
            break
        if best is None:  # values near the threshold cost less than the average one
            dropped = int(over * (1 - budget_bytes / over_bytes) * 1.4 * 2**attempt) + 1
            guess = over - dropped if over - dropped > fits else (fits + over) // 2
        elif attempt % 3 == 2:  # interpolation may creep along a curve
            guess = (fits + over) // 2
        else:
            share = (budget_bytes - fits_bytes) / max(over_bytes - fits_bytes, 1)
            guess = fits + int(0.995 * share * (over - fits))
        guess = min(max(guess, fits + 1), over - 1)
        tried = proposer.body(cut.only(order.first(guess)))
        if tried.nbytes <= budget_bytes:
            fits, fits_bytes, best = guess, tried.nbytes, tried
        else:
            over, over_bytes = guess, tried.nbytes
    return best


class _Order:
    """Values by what they earn, the best first.

    Where few are left out, as nearly always, only the last ones are sorted.

    Args:
        rank: of each value.
        must_keep: which of them go before all others.
    """

    def __init__(self, rank: NDArray[np.float64], must_keep: Bools) -> None:
        self._rank, self._must_keep = rank, must_keep
        self._last = np.zeros(0, np.int64)

    def first(self, count: int) -> Ints:
        """The ascending places of the first ``count`` values."""
        size = len(self._rank)
        if size - count > len(self._last):
            self._last = self._sorted(min(_SPARE * (size - count), size))
        kept = np.ones(size, np.bool_)
        kept[self._last[len(self._last) - (size - count) :]] = False
        return np.flatnonzero(kept)

    def _sorted(self, count: int) -> Ints:
        """The last ``count`` values or more, in order."""
        if self._must_keep.any() or count == len(self._rank):
            return np.lexsort((-self._rank, ~self._must_keep))
        limit = np.partition(self._rank, count - 1)[count - 1]
        low = np.flatnonzero(self._rank <= limit)
        last: Ints = low[np.argsort(-self._rank[low], kind="stable")]
        return last


def short_step(exponent: float) -> float:
    """``2**exponent`` with 12 bits of mantissa.

    So that platforms whose logarithms differ in the last place still write the same bytes.
    """
    bits = np.float32(np.exp2(exponent)).view(np.uint32) & np.uint32(0xFFFFF800)
    return max(float(np.uint32(bits).view(np.float32)), SMALLEST_STEP)
