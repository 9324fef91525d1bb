"""The stages of a plan: the advised ones, less the layers that do not train."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from fedfreeze.plan import Stage
from strategies.freeze.policy import StageAdvice


def merged(advised: Sequence[StageAdvice], trained: Sequence[str]) -> tuple[Stage, ...]:
    """The advised stages with ``trained`` layers alone; without advice, one stage of them all.

    A stage that is left without layers gives its share to the next one, the last to the one before
    it; neighbours that have become the same are one.

    >>> merged([StageAdvice(0.5, ("a",)), StageAdvice(0.5, ("a", "b"))], ["b"])
    (Stage(share=1.0, layers=('b',)),)
    """
    stages: list[Stage] = []
    carried = 0.0
    for stage in advised or (StageAdvice(1.0, tuple(trained)),):
        layers = tuple(name for name in trained if name in stage.layers)
        if not layers:
            carried += stage.share
        elif stages and stages[-1].layers == layers:
            stages[-1] = replace(stages[-1], share=stages[-1].share + stage.share + carried)
            carried = 0.0
        else:
            stages.append(Stage(stage.share + carried, layers))
            carried = 0.0
    if carried and stages:
        stages[-1] = replace(stages[-1], share=stages[-1].share + carried)
    return tuple(stages) or (Stage(1.0, tuple(trained)),)


def share_of(advised: Sequence[StageAdvice], layer: str) -> float:
    """The share of the steps in which a layer may train, as advised."""
    return sum(s.share for s in advised if layer in s.layers) if advised else 1.0


def unstaged(advised: Sequence[StageAdvice], layers: Collection[str]) -> frozenset[str]:
    """Of ``layers``, those that no stage trains."""
    if not advised:
        return frozenset()
    return frozenset(layers) - {name for stage in advised for name in stage.layers}
