"""Every task of the project in a line each: what it is, and whether its data is here."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from fedfreeze.errors import ConfigError, StateError
from tasks.at_hand import at_hand
from tasks.loading import load
from tasks.registry import OWNERS, TASKS, module_of


@dataclass(frozen=True)
class ListedTask:
    """One task; what is not known is None.

    Attributes:
        name: as strategies name it.
        what: the first line of its file.
        classes: how many; 0 if its targets are no classes.
        owner: what a natural client is; empty if the examples have no owners.
        source: where its data would be read from here; None if it is nowhere.
        problem: why it is nowhere, or why the task cannot be used here.
    """

    name: str
    what: str = ""
    classes: int | None = None
    owner: str = ""
    source: str | None = None
    problem: str | None = None


def listed(data_dir: str | None, names: Sequence[str] = tuple(TASKS)) -> list[ListedTask]:
    """The tasks of these names; one that cannot be used says why, and hides no other."""
    return [_described(name, data_dir) for name in names]


def _described(name: str, data_dir: str | None) -> ListedTask:
    owner = OWNERS.get(name, "")
    try:
        task = load(name)
    except ConfigError as error:
        return ListedTask(name, owner=owner, problem=str(error))
    what = (inspect.getdoc(importlib.import_module(module_of(name))) or "").partition("\n")[0]
    classes = len(task.labels)
    try:
        return ListedTask(name, what, classes, owner, source=at_hand(task, data_dir))
    except (ConfigError, StateError) as error:
        return ListedTask(name, what, classes, owner, problem=str(error))


def table(tasks: Sequence[ListedTask]) -> Table:
    """The list for a person; what is in brackets is left to ``--json``, so that it stays short."""
    columns = Table("task", "what", "classes", "owners", box=None, pad_edge=False)
    columns.add_column("data here", overflow="fold")
    for task in tasks:
        cells = (
            task.name,
            task.what.partition(" (")[0],
            "" if task.classes is None else str(task.classes or "numbers"),
            task.owner or "-",
            (task.source or "no").partition(" (")[0],
        )
        columns.add_row(*(Text(cell) for cell in cells))
    return columns
