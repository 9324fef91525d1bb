"""What can be known to be wrong with a run before anything is started.

The server looks again when it starts; whoever starts Flower looks first, since minutes of waiting
for boards are a poor way to learn of a mistyped glob. What it finds out on the way is kept, so that
plans can be made without torch.
"""

from __future__ import annotations

from strategies.freeze import policy_for
from strategies.orders import limits
from strategies.schema import Strategy
from tasks.division_cache import remember_examples
from tasks.layout_cache import cached_layout, remember
from tasks.loading import load
from tasks.rehearsal import rehearse
from tasks.task import Task


def check_model(strategy: Strategy) -> Task:
    """Refuse a task that cannot be loaded, or whose model lacks layers that the strategy names.

    Raises:
        ConfigError, LayoutError: it is so.
    """
    task = load(strategy.task, strategy.options)
    layout = task.layout()
    limits(layout, strategy.clients, strategy.compression, strategy.local, strategy.limits)
    policy_for(strategy.freeze, layout)
    if cached_layout(strategy.task, strategy.options) is None:
        remember(strategy.task, strategy.options, layout)
    return task


def check(strategy: Strategy, clients: int | None, data_dir: str | None) -> None:
    """Refuse a run that could not end well.

    Args:
        strategy: with every override applied; its task may be a file.
        clients: how many share the data; None when that is not known yet.
        data_dir: where the data is, if somebody said.

    Raises:
        ConfigError: the task, its data, its division, its weights or the budget is wrong.
        LayoutError: the model cannot be divided into these layers.
        StateError: a file of data or of weights is torn.
    """
    task = check_model(strategy)
    rehearse(task, data_dir)
    if clients is None:
        task.check_division(strategy.split, data_dir)
    else:
        held = task.client_targets(clients, strategy.split, data_dir)
        remember_examples(strategy.task, strategy.split, [len(some) for some in held], data_dir)
    task.validation(strategy.split, data_dir)
    if strategy.model.pretrained is not None:
        task.initial(strategy.seed)
