"""Gradual unfreezing within a round: one more module trains after each period of local steps.

With M modules in the order in which they are unfrozen, K local steps and the share g of them,

    P = floor(g K / M)                      steps of a period
    module m trains from step m P on        m = 0 ... M - 1

so that the last module is frozen for (M - 1) P steps, which is less than g K: (M - 1) / M of it.
A share so small that P is 0 freezes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from logging import getLogger

from fedfreeze.plan import Stage
from strategies.freeze.policy import StageAdvice
from strategies.local_step import LocalStep

_log = getLogger("fedfreeze")


def period(share: float, steps: int, modules: int) -> int:
    """Steps after which the next module is unfrozen; see P above.

    >>> period(0.4, 50, 5), period(0.29, 100, 1), period(0.1, 7, 5)
    (4, 29, 0)
    """
    # 0.29 * 100 is a little below 29 in floating point.
    return math.floor(share * steps / modules + 1e-9)


def unfrozen_in_turn(share: float, modules: Sequence[Sequence[str]]) -> tuple[StageAdvice, ...]:
    """Stages of ``share / M`` of the round, the last of what is left; none where nothing waits.

    A server does not know how many steps a board takes, so it advises shares;
    :class:`Unfreezing` makes steps of them.

    >>> for stage in unfrozen_in_turn(0.5, [["a"], ["b", "c"]]):
    ...     print(stage.share, stage.layers)
    0.25 ('a',)
    0.75 ('a', 'b', 'c')
    """
    count = len(modules)
    if share == 0 or count < 2:
        return ()
    shares = [share / count] * (count - 1)
    shares.append(1 - share * (count - 1) / count)
    stages, layers = [], list[str]()
    for of_stage, module in zip(shares, modules, strict=True):
        layers += module
        stages.append(StageAdvice(of_stage, tuple(layers)))
    return tuple(stages)


class Unfreezing(LocalStep):
    """The client half: the step at which each stage begins.

    Args:
        share: g.
        modules: in the order in which they are unfrozen.
    """

    def __init__(self, share: float, modules: Sequence[Sequence[str]]) -> None:
        self._share = share
        self._count = len(modules)
        self._turn = {name: turn for turn, module in enumerate(modules) for name in module}

    def stage_starts(self, stages: Sequence[Stage], steps: int) -> tuple[int, ...]:
        """A stage begins when the last of its modules is unfrozen; the first one at once.

        A board that cannot train the first modules begins with the first one that it can.
        """
        length = period(self._share, steps, self._count)
        if length == 0 and self._share > 0 and self._count > 1:
            _log.warning(
                "%d local steps are too few to unfreeze %d modules one by one in %g of them; all "
                "of them train from the start",
                steps,
                self._count,
                self._share,
            )
        turns = [max(self._turn[name] for name in stage.layers) for stage in stages]
        return (0, *(length * turn for turn in turns[1:]))
