"""The local learning rate over rounds."""

from __future__ import annotations

import math

from strategies.tables import Local


def learning_rate(local: Local, number: int, rounds: int) -> float:
    """The rate of round ``number`` (from 1) of ``rounds``.

    The first ``warm_up_rounds`` rise linearly and reach the full rate in their last round. Then,
    with t rounds since and T rounds to go in all, for the rate r:

    - constant: r
    - step: r * step_factor ** floor(t / step_rounds)
    - inverse: r / (1 + inverse_decay * t)
    - cosine: from r to r * final_share along half a cosine, which the last round reaches
    """
    rate, warm = local.learning_rate, local.warm_up_rounds
    if number < warm:
        return rate * number / warm
    since = number - max(warm, 1)
    if local.schedule == "step":
        return rate * local.step_factor ** (since // local.step_rounds)
    if local.schedule == "inverse":
        return rate / (1 + local.inverse_decay * since)
    if local.schedule == "cosine":
        ahead = max(1, rounds - max(warm, 1))
        fall = (1 - math.cos(math.pi * min(1.0, since / ahead))) / 2
        return rate * (1 - (1 - local.final_share) * fall)
    return rate
