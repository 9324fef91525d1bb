"""Knapsacks with a shallowest item, one for each place where it can be.

Items 0 ... K - 1 stand in a row. A set A with the shallowest item p takes ``weights[:, A]`` of each
resource and may take ``room[:, p]``: what is left when everything that depends on p alone is paid.
Wanted is a set of the greatest value that holds all ``forced`` items.

For each p the Lagrangian relaxation

    bound_p(m) = sum of v_l + sum over free l > p of max(0, v_l - m w_l) + m room left,   m >= 0

bounds the value from above. Multipliers come from subgradient steps (Held, Wolfe and Crowder 1974),
sets from filling by v - m w and by v / m w. Where bound and best set leave a gap, the items that
the bound does not decide are branched on, breadth first: a set that goes against the sign of
v - m w loses at least that much of the bound (Geoffrion 1974).

All sums run over items or resources one by one, so that every platform rounds them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

STEPS = 40

# With four times as many, no plan of 60 layers in 45 was better, and some took three times as long.
MOST_SETS = 5_000

# Rounding must not keep out a set that takes exactly what there is.
_SLACK = 1e-12


@dataclass(frozen=True)
class Packed:
    """The answer.

    Attributes:
        items: ascending.
        value: their sum.
        bound: what no set exceeds; ``value`` itself where the search was complete.
    """

    items: tuple[int, ...]
    value: int
    bound: int


def pack(
    values: Sequence[int],
    weights: Floats,
    room: Floats,
    forced: Sequence[int] = (),
    *,
    most_sets: int = MOST_SETS,
) -> Packed | None:
    """The best set that was found; None if no item can be the shallowest.

    Args:
        values: int[K], 0 or more.
        weights: float64[D, K], 0 or more.
        room: float64[D, K].
        forced: items that every set must hold.
        most_sets: partial sets that are followed at most; beyond it, those that lost least of the
            bound are.
    """
    search = _Search(np.array(values, np.int64), weights, room, forced)
    return search.run(most_sets) if len(search.places) else None


class _Search:
    """One knapsack a column; columns are the places of the shallowest item."""

    def __init__(
        self, values: Counts, weights: Floats, room: Floats, forced: Sequence[int]
    ) -> None:
        # A resource that never binds falls away, and the others are scaled to count alike.
        total = weights.sum(axis=1)
        binding = total > room.min(axis=1)
        weights, room, total = weights[binding], room[binding], total[binding]
        scale = np.where(total > 0, total, 1.0)[:, None]
        self.values, self.weights = values, weights / scale
        places = np.arange(len(values))
        held = np.zeros((len(values), len(values)), bool)
        held[list(forced)] = True
        held[places, places] = True
        left = room / scale + _SLACK - _spread(self.weights, held)
        last = min(forced, default=len(values) - 1)
        self.places = np.flatnonzero((left >= 0).all(axis=0) & (places <= last))
        self.left, self.held = left[:, self.places], held[:, self.places]
        self.base: Counts = (values[:, None] * self.held).sum(axis=0)
        self.optional = (places[:, None] > self.places) & ~self.held
        self.value = -1
        self.items: tuple[int, ...] = ()

    def run(self, most_sets: int) -> Packed:
        """The best set of all columns."""
        multipliers, bounds = self._relax()
        highest = np.floor(bounds + 0.5).astype(np.int64)
        unproved = 0
        for at in np.argsort(-highest, kind="stable").tolist():
            if highest[at] <= self.value:
                break
            if not self._branch(at, multipliers[:, at], bounds[at], most_sets):
                unproved = max(unproved, int(highest[at]))
        return Packed(self.items, self.value, max(self.value, unproved))

    def _relax(self) -> tuple[Floats, Floats]:
        """Multipliers float64[D, P], and the bounds that they give."""
        m = np.zeros(self.left.shape)
        best_m, best = m.copy(), np.full(len(self.places), np.inf)
        pace = np.full(len(self.places), 1.0)
        for step in range(STEPS):
            reduced = self._reduced(m)
            taken = self.optional & (reduced > 0)
            bound = self.base + (reduced * taken).sum(axis=0) + (m * self.left).sum(axis=0)
            better = bound < best
            best_m[:, better], best[better] = m[:, better], bound[better]
            pace = np.where(better, pace, 0.9 * pace)
            if step in (0, STEPS // 4):
                self._fill(best_m, by_price=step > 0)
            slope = self.left - _spread(self.weights, taken)
            length = np.maximum((slope**2).sum(axis=0), 1e-30)
            gap = np.maximum(bound - self.value, 0.0)
            m = np.maximum(0.0, m - pace * gap / length * slope)
        self._fill(best_m, by_price=True)
        self._fill(best_m, by_price=False)
        return best_m, best

    def _reduced(self, m: Floats) -> Floats:
        """What is left of values when resources have their price: v - m w, float64[K, P]."""
        reduced: Floats = self.values[:, None] - (self.weights[:, :, None] * m[:, None]).sum(axis=0)
        return reduced

    def _fill(self, m: Floats, *, by_price: bool) -> None:
        """Take items by v / m w or by v - m w, as long as they fit; keep the best set."""
        reduced = self._reduced(m)
        rank = reduced
        if by_price:
            rank = self.values[:, None] / np.maximum(self.values[:, None] - reduced, 1e-9)
        order = np.argsort(np.where(self.optional, -rank, np.inf), axis=0, kind="stable")
        left, taken = self.left, np.zeros(self.optional.shape, bool)
        columns = np.arange(len(self.places))
        for items in order:
            after = left - self.weights[:, items]
            takes = self.optional[items, columns] & (after >= 0).all(axis=0)
            left = np.where(takes, after, left)
            taken[items, columns] |= takes
        value = self.base + (self.values[:, None] * taken).sum(axis=0)
        best = int(np.argmax(value))
        self._note(int(value[best]), taken[:, best] | self.held[:, best])

    def _note(self, value: int, chosen: NDArray[np.bool_]) -> None:
        if value > self.value:
            self.value, self.items = value, tuple(np.flatnonzero(chosen).tolist())

    def _branch(self, at: int, m: Floats, bound: float, most_sets: int) -> bool:
        """Look for a better set in one column; whether no set was left out unseen."""
        reduced = np.where(self.optional[:, at], self._reduced(m[:, None])[:, 0], 0.0)
        spare = bound - self.value - 0.5  # what a better set loses of the bound is less
        decided = (np.abs(reduced) >= spare) & self.optional[:, at]
        surely = decided & (reduced > 0)
        states = _States(
            taken=(self.held[:, at] | surely)[None],
            values=np.array([self.base[at] + self.values[surely].sum()]),
            left=self.left[:, at, None] - _spread(self.weights, surely[:, None]),
            lost=np.zeros(1),
        )
        complete = True
        open_items = np.flatnonzero(self.optional[:, at] & ~decided)
        for item in open_items[np.argsort(-np.abs(reduced[open_items]), kind="stable")].tolist():
            states.branch(item, int(self.values[item]), self.weights[:, item], reduced[item], spare)
            complete &= states.thin_out(most_sets)
        states.keep(np.flatnonzero((states.left >= 0).all(axis=0)))
        if len(states.values):
            best = int(np.argmax(states.values))
            self._note(int(states.values[best]), states.taken[best])
        return complete


@dataclass
class _States:
    """Partial sets, side by side: bool[N, K], int64[N], float64[D, N] and float64[N]."""

    taken: NDArray[np.bool_]
    values: Counts
    left: Floats
    lost: Floats

    def branch(self, item: int, value: int, weight: Floats, reduced: float, spare: float) -> None:
        """Every set with and without the item, where that can still be better."""
        after = self.left - weight[:, None]
        takes = np.flatnonzero((after >= 0).all(axis=0) & (self.lost + max(0.0, -reduced) < spare))
        leaves = np.flatnonzero(self.lost + max(0.0, reduced) < spare)
        grown = self.taken[takes]
        grown[:, item] = True
        self.taken = np.concatenate([grown, self.taken[leaves]])
        self.values = np.concatenate([self.values[takes] + value, self.values[leaves]])
        self.left = np.concatenate([after[:, takes], self.left[:, leaves]], axis=1)
        self.lost = np.concatenate(
            [self.lost[takes] + max(0.0, -reduced), self.lost[leaves] + max(0.0, reduced)]
        )

    def thin_out(self, most: int) -> bool:
        """Keep the sets that lost least; whether that was all of them."""
        if len(self.values) <= most:
            return True
        # Of equal losses the first, so that every platform keeps the same; faster than sorting.
        last = np.partition(self.lost, most - 1)[most - 1]
        kept = self.lost < last
        kept[np.flatnonzero(self.lost == last)[: most - int(kept.sum())]] = True
        self.keep(np.flatnonzero(kept))
        return False

    def keep(self, which: NDArray[np.intp]) -> None:
        """Drop the other sets."""
        self.taken, self.values = self.taken[which], self.values[which]
        self.left, self.lost = self.left[:, which], self.lost[which]


def _spread(weights: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """What each column of ``chosen`` takes of each resource, float64[D, P]."""
    taken: Floats = (weights[:, :, None] * chosen[None]).sum(axis=1)
    return taken
