"""What each merged update brought: how far it pulls to where the others pull.

The collaborative gain of client i in one round is

    g_i = cos(Delta_i, m_i) * min(2, w_i ||Delta_i|| / median over j of w_j ||Delta_j||)

with Delta_i its decoded update, w_i its weight in the merge, and m_i the mean that the others'
updates alone would have given, layer by layer over those that somebody else trained, too. The
cosine with the merged gradient is the measure of CGSV (Xu et al., "Gradient driven rewards to
guarantee fairness in collaborative machine learning", NeurIPS 2021); here without the client's own
part, which would praise the heavy for agreeing with themselves. The weighted norm is what optimal
client sampling (Chen, Horvath and Richtarik, TMLR 2022) samples by; it is bounded, so that nobody
gains by sending much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedfreeze.layout import Layout
from strategies.aggregation.mean import Update, weighted_means

MOST_TIMES_MEDIAN = 2.0


@dataclass
class _Sums:
    """Of one update, over its parameters.

    Attributes:
        whole: squared norm.
        inner, own, others: over layers that somebody else trained: the inner product with what they
            did, and the two squared norms.
    """

    whole: float = 0.0
    inner: float = 0.0
    own: float = 0.0
    others: float = 0.0
    is_alone: bool = True


def collaborative_gains(layout: Layout, updates: Sequence[Update]) -> dict[str, float]:
    """By device id, from -2 to 2; none for a client with no layer that anybody else trained."""
    sums = {update.device_id: _Sums() for update in updates}
    for name, means in weighted_means(layout, updates):
        trainers = [update for update in updates if name in update.layers]
        for tensor in (t.name for t in layout[name].parameters if t.name in means):
            for update in trainers:
                _add(sums[update.device_id], update, trainers, tensor, means[tensor])
    moved = {u.device_id: u.weight * math.sqrt(sums[u.device_id].whole) for u in updates}
    typical = median(moved.values()) if moved else 0.0
    return {
        device_id: _cosine(of) * _times(moved[device_id], typical)
        for device_id, of in sorted(sums.items())
        if not of.is_alone
    }


def _add(
    sums: _Sums,
    update: Update,
    trainers: Sequence[Update],
    tensor: str,
    mean: NDArray[np.float64],
) -> None:
    delta = update.deltas[tensor].astype(np.float64)
    square = float(np.square(delta).sum())
    sums.whole += square
    if len(trainers) > 1:
        rest = _rest(update, trainers, tensor, mean)
        sums.is_alone = False
        sums.inner += float((delta * rest).sum())
        sums.own += square
        sums.others += float(np.square(rest).sum())


def _rest(
    update: Update, trainers: Sequence[Update], tensor: str, mean: NDArray[np.float64]
) -> NDArray[Any]:
    """The mean of all but one."""
    total = sum(other.weight for other in trainers)
    # Updates that moved too far were refused before, so the difference keeps most of its digits.
    if update.weight <= total / 2:
        delta = update.deltas[tensor].astype(np.float64)
        rest: NDArray[Any] = (total * mean - update.weight * delta) / (total - update.weight)
        return rest
    # Beside one that outweighs all others together, a difference would leave nothing of them.
    others = [other for other in trainers if other is not update]
    summed = sum(other.weight * other.deltas[tensor].astype(np.float64) for other in others)
    return np.asarray(summed / sum(other.weight for other in others))


def _cosine(sums: _Sums) -> float:
    """0 where one of the two did not move."""
    product = math.sqrt(sums.own) * math.sqrt(sums.others)
    return max(-1.0, min(1.0, sums.inner / product)) if product > 0 else 0.0


def _times(moved: float, typical: float) -> float:
    if moved >= MOST_TIMES_MEDIAN * typical:
        return MOST_TIMES_MEDIAN if moved > 0 else 0.0
    return moved / typical
