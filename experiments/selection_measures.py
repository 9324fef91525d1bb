"""What is measured of a run that chose its cohorts by some rule. Pure functions of its records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

# Curves jump from round to round where few clients are asked.
MEAN_OF = 5


@dataclass(frozen=True)
class Curve:
    """One run: its accuracy over the rounds and over simulated time.

    Attributes:
        seconds: simulated, since the run began, at the end of each round.
        accuracy: on the test half, the mean of the last five rounds.
        jain: Jain's index of how often each client's update was merged.
        used: merged updates.
    """

    seconds: tuple[float, ...]
    accuracy: tuple[float, ...]
    jain: float
    used: int

    def at(self, seconds: float) -> float:
        """The accuracy when so much simulated time has passed; NaN before the first round ends."""
        ended = [a for s, a in zip(self.seconds, self.accuracy, strict=True) if s <= seconds]
        return ended[-1] if ended else math.nan

    def seconds_to(self, target: float) -> float | None:
        """Simulated time until the accuracy is as high as the target; None if it never is."""
        pairs = zip(self.seconds, self.accuracy, strict=True)
        return next((s for s, a in pairs if a >= target), None)


def curve(
    rounds: Sequence[Mapping[str, Any]], decisions: Iterable[Mapping[str, Any]], clients: int
) -> Curve:
    """Of the records of a run with so many clients."""
    raw = [record["test_accuracy"] for record in rounds]
    counts = Counter(record["device_id"] for record in decisions if record.get("status") == "used")
    merged = [*counts.values(), *[0] * (clients - len(counts))]
    return Curve(
        seconds=tuple(record["simulated_total_s"] for record in rounds),
        accuracy=tuple(fmean(raw[max(0, at - MEAN_OF + 1) : at + 1]) for at in range(len(raw))),
        jain=jain(merged),
        used=sum(merged),
    )


def jain(counts: Sequence[float]) -> float:
    """Jain's fairness index ``(sum x)^2 / (n sum x^2)``: 1 if all are equal, 1/n if one has all.

    Source: Jain, Chiu and Hawe, DEC Research Report TR-301, 1984.

    >>> jain([2, 2, 2, 2]), jain([5, 0, 0, 0])
    (1.0, 0.25)
    """
    squares = sum(x * x for x in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else math.nan


def table(curves: Mapping[str, Mapping[int, Curve]], target: float) -> list[str]:
    """Lines of two tables: a row for each rule, over the seeds that all of them have.

    Equal time is, for each seed, that of the uniform draws; a rule that was done earlier stands
    with what it had.
    """
    seeds = sorted(set.intersection(*(set(of) for of in curves.values())))
    end = {seed: curves["uniform"][seed].seconds[-1] for seed in seeds}
    head = (
        "| selection | at equal rounds | at equal time | at a quarter of it "
        f"| minutes to {target:g} | reached | minutes in all | Jain's index |"
    )
    rows, against = [head, _rule(8)], ["| than uniform |" + "|".join(_POINTS) + "|", _rule(4)]
    base = _points(curves["uniform"], seeds, end)
    for rule, of in curves.items():
        points = _points(of, seeds, end)
        reached = [s for seed in seeds if (s := of[seed].seconds_to(target)) is not None]
        cells = [
            rule,
            *map(spread, points),
            minutes(reached),
            f"{len(reached)} of {len(seeds)}",
            minutes([of[seed].seconds[-1] for seed in seeds]),
            spread([of[seed].jain for seed in seeds]),
        ]
        rows.append(f"| {' | '.join(cells)} |")
        if rule != "uniform":
            found = map(difference, points, base)
            against.append(f"| {' | '.join([rule, *found])} |")
    return [*rows, "", *against]


_POINTS = (" at equal rounds ", " at equal time ", " at a quarter of it ")


def _rule(columns: int) -> str:
    return "|" + "---|" * columns


def _points(
    of: Mapping[int, Curve], seeds: Sequence[int], end: Mapping[int, float]
) -> tuple[list[float], ...]:
    """The accuracies that are compared, by seed."""
    return (
        [of[seed].accuracy[-1] for seed in seeds],
        [of[seed].at(end[seed]) for seed in seeds],
        [of[seed].at(end[seed] / 4) for seed in seeds],
    )


def difference(values: Sequence[float], base: Sequence[float]) -> str:
    """Mean of the differences, seed by seed, and its standard error."""
    found = [value - other for value, other in zip(values, base, strict=True)]
    error = f" ± {stdev(found) / math.sqrt(len(found)):.3f}" if len(found) > 1 else ""
    return f"{fmean(found):+.3f}{error}"


def spread(values: Sequence[float]) -> str:
    """Mean and sample standard deviation, as a cell of a table."""
    off = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{off}"


def minutes(seconds: Sequence[float]) -> str:
    """As :func:`spread`, in minutes."""
    if not seconds:
        return "-"
    found = [value / 60 for value in seconds]
    off = f" ± {stdev(found):.1f}" if len(found) > 1 else ""
    return f"{fmean(found):.1f}{off}"
