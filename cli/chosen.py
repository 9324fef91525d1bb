"""The strategy and task that a command speaks of when it starts no run."""

from __future__ import annotations

from collections.abc import Sequence

from cli.named_files import at_hand
from fedfreeze import plain_json
from strategies import schema
from strategies.schema import Strategy
from tasks.loading import load
from tasks.task import Task


def chosen(
    strategy: str,
    overrides: Sequence[str] = (),
    *,
    task: str | None = None,
    seed: int | None = None,
) -> tuple[Strategy, Task]:
    """A strategy, and the task that it names with what it chooses of it.

    Args:
        strategy: a preset's name or a file.
        overrides: ``key=value``, later ones win.
        task: another task than the strategy's; a ``.py`` file is looked for beside the strategy's
            file, then in the working directory.
        seed: another seed.

    Raises:
        ConfigError: something in it is wrong; all mistakes of a file at once.
    """
    every = [*overrides]
    if task is not None:
        every.append(f"task={plain_json.text(task)}")
    if seed is not None:
        every.append(f"seed={seed}")
    read = schema.load(strategy, every)
    here = at_hand(read, strategy)
    return read, load(here.task, here.options)
