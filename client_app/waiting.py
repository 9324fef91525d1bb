"""What becomes of a residual that waits.

It waits because its layer is frozen, because the board missed rounds, or because the layout
changed. It refers to the model that it was computed on, and grows stale meanwhile (Li and Li 2022,
on error feedback under partial participation, name it stale error compensation). For each of the
three a strategy says ``keep``, ``decay`` or ``drop``; ``docs/residual.md`` tells the order. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from client_app.store import BoardState, History
from compression import scaled
from fedfreeze.layout import Arrays, Layout
from strategies.tables import Residual


def missed_rounds(history: History, round_number: int) -> int:
    """Rounds since the last one in which the board trained, not counting this one.

    >>> missed_rounds(History(trained_round=4), 7)
    2
    """
    last = history.trained_round
    return 0 if last is None else max(0, round_number - last - 1)


def waited(
    residual: Arrays,
    layout: Layout,
    rules: Residual,
    *,
    trained: Collection[str],
    missed: int,
) -> Arrays:
    """A settled residual after the rules for frozen layers and for missed rounds.

    With f the ``decay`` where the rule is ``decay``, 0 where it is ``drop``, else 1, a tensor of
    layer l is multiplied once, by ``f_missed^missed * (f_frozen if l is frozen in this round)``.
    Nothing is multiplied where that is 1.

    Args:
        residual: by tensor name.
        layout: of the model.
        rules: of the strategy.
        trained: layers of this round's plan; all others are frozen.
        missed: rounds since the board trained last.
    """
    stale = _factor(rules.missed, rules) ** missed
    frozen = stale * _factor(rules.frozen, rules)
    factors = {
        tensor.name: stale if layer.name in trained else frozen
        for layer in layout
        for tensor in layer.tensors
    }
    if all(factor == 1 for factor in factors.values()):
        return residual
    return scaled(residual, factors)


def adopted(foreign: BoardState, layout: Layout, rules: Residual) -> BoardState:
    """The state with which a board begins under another layout of the same run.

    Tensors of a name and shape that the new layout has, and lets travel, are kept or decayed by
    one round; all others are dropped, and so are the packet and the model of the other layout.
    """
    held = {
        tensor.name: foreign.residual[tensor.name]
        for tensor in layout.tensors.values()
        if tensor.travels
        and tensor.name in foreign.residual
        and foreign.residual[tensor.name].shape == tensor.shape
    }
    factor = _factor(rules.layout_change, rules)
    residual = scaled(held, dict.fromkeys(held, factor))
    since = {
        layer.name: foreign.history.since[layer.name]
        for layer in layout
        if layer.name in foreign.history.since and any(t.name in residual for t in layer.tensors)
    }
    history = replace(foreign.history, since=since, ranges={})
    return BoardState(residual=residual, history=history)


def _factor(rule: str, rules: Residual) -> float:
    return {"keep": 1.0, "decay": rules.decay, "drop": 0.0}[rule]
