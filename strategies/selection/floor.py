"""The fairness floor: who must be asked now, so that nobody waits for longer than promised.

Each client that is there has a slack: the rounds in which it may still go unasked before the
promise is broken. With cohorts of k, the promises can be kept if for every d at most ``k (d + 1)``
clients have a slack of d or less. That stays so if in each round

    max over d of (clients with a slack of d or less) - k d

clients with the least slack are asked, and the others may be anybody: what is asked now of those
with a slack up to d is taken from what the d rounds after this one could not bear. (The test of
earliest-deadline-first scheduling, Liu and Layland, Journal of the ACM 20, 1973, for jobs of one
round.)

When somebody comes back, its turn may fall together with another one, which the test did not see
while it was away. Then a promise breaks. Whoever has waited longest is asked first, and all turns
that are due take at most ``clients / k`` rounds, so that nobody waits for twice the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


def window(fairness_rounds: int, clients: int, size: int) -> int:
    """Rounds within which each of so many clients can be asked by cohorts of ``size``.

    As promised, or the least that is possible.

    >>> window(5, clients=10, size=1), window(20, clients=10, size=1)
    (10, 20)
    """
    return max(fairness_rounds, math.ceil(clients / size))


def due(slacks: Iterable[int], size: int) -> int:
    """How many of those with the least slack must be asked now; at most ``size``.

    Args:
        slacks: of everybody who is there; below 0 where a promise is broken already.
        size: of the cohort.

    >>> due([0, 1, 1, 1], size=2), due([1, 1, 1, 1], size=2), due([3, 3, 4, 9], size=2)
    (2, 2, 0)
    """
    ordered = sorted(max(0, slack) for slack in slacks)
    needed = (at + 1 - size * slack for at, slack in enumerate(ordered))
    return min(size, max(0, *needed)) if ordered else 0
