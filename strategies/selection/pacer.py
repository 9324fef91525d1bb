"""Oort's pacer: how long a round should last, relaxed as long as haste costs utility."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

# W rounds are held against the W before them; Oort's own runs of hundreds of rounds take 20.
STEP_ROUNDS = 5
# In percent of the clients that are fast enough, as in Oort's own code.
FIRST_PERCENT, MORE_PERCENT, MOST_PERCENT = 30, 5, 100


@dataclass(frozen=True)
class Pacer:
    """What the pacer remembers.

    Attributes:
        percent: of the clients whose rounds are to be as long as preferred, or shorter.
        rounds: seen so far.
        utilities: summed statistical utility of the clients merged in the last 2 W rounds.
    """

    percent: int = FIRST_PERCENT
    rounds: int = 0
    utilities: tuple[float, ...] = ()

    def after(self, utility: float) -> Pacer:
        """The pacer after one more round.

        Every W rounds, if the last W brought less utility than the W before, slower clients become
        welcome.
        """
        utilities = (*self.utilities, utility)[-2 * STEP_ROUNDS :]
        now = replace(self, rounds=self.rounds + 1, utilities=utilities)
        if len(utilities) < 2 * STEP_ROUNDS or now.rounds % STEP_ROUNDS:
            return now
        if sum(utilities[:STEP_ROUNDS]) > sum(utilities[STEP_ROUNDS:]):
            return replace(now, percent=min(MOST_PERCENT, self.percent + MORE_PERCENT))
        return now

    def preferred_s(self, durations_s: Iterable[float]) -> float | None:
        """T, of the durations of all clients; None while nothing is too slow.

        >>> Pacer(percent=30).preferred_s([40.0, 10.0, 30.0, 20.0])
        20.0
        """
        ordered = sorted(durations_s)
        if not ordered or self.percent >= MOST_PERCENT:
            return None
        return ordered[len(ordered) * self.percent // 100]
