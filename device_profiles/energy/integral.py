"""From samples of power to energy: the trapezoid rule, and where samples are missing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

# Samples so many intervals apart have something missing between them.
_GAP = 3.0


class Sample(NamedTuple):
    """Power at one instant of a monotonic clock."""

    at_s: float
    power_w: float


def energy_j(samples: Sequence[Sample]) -> float | None:
    """The integral of power over time; None of fewer than two samples.

    sum over neighbours of (P_i + P_{i+1}) / 2 (t_{i+1} - t_i), exact where power is linear between
    samples.

    >>> energy_j([Sample(0.0, 2.0), Sample(1.0, 4.0), Sample(3.0, 4.0)])
    11.0
    """
    if len(samples) < 2:
        return None
    return sum((a.power_w + b.power_w) / 2 * (b.at_s - a.at_s) for a, b in pairwise(samples))


def held(samples: Sequence[Sample], begin_s: float, end_s: float) -> list[Sample]:
    """The samples, the first one held back to ``begin_s`` and the last one on to ``end_s``.

    A sensor that begins late or falls silent would else seem to draw nothing there. Of fewer than
    two samples nothing is made.

    >>> held([Sample(1.0, 2.0), Sample(3.0, 4.0)], 0.0, 9.0)[-1]
    Sample(at_s=9.0, power_w=4.0)
    """
    if len(samples) < 2:
        return list(samples)
    first, last = samples[0], samples[-1]
    return [Sample(begin_s, first.power_w), *samples, Sample(end_s, last.power_w)]


def sample_rate_hz(times_s: Sequence[float]) -> float | None:
    """Mean samples a second; None of fewer than two, or where no time has passed.

    >>> sample_rate_hz([0.0, 0.5, 1.0])
    2.0
    """
    if len(times_s) < 2 or times_s[-1] <= times_s[0]:
        return None
    return (len(times_s) - 1) / (times_s[-1] - times_s[0])


def gaps_s(times_s: Sequence[float], interval_s: float) -> float:
    """Seconds between neighbours that are more than three intervals apart.

    >>> gaps_s([0.0, 1.0, 9.0, 10.0], interval_s=1.0)
    8.0
    """
    return sum((b - a for a, b in pairwise(times_s) if b - a > _GAP * interval_s), start=0.0)
