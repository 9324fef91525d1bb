"""Whether a task's data is here, without reading a large set from a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tasks.sources import Place, place
from tasks.task import Task


class _FoundError(Exception):
    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


class _Probe(Place):
    """Stops a reader as soon as its place has something for it."""

    def find(self, what: str, candidates: Sequence[str]) -> Path | None:
        path = super().find(what, candidates)
        if path is not None:
            raise _FoundError(path)
        return None


def at_hand(task: Task, data_dir: str | None) -> str:
    """Where the task's data would be read from: a path in the data folder, or the source's name.

    A file that was found was not read, so it may still turn out to be torn. What is installed as a
    package or ships with the project is read.

    Args:
        task: its reader.
        data_dir: see :func:`tasks.sources.place`.

    Raises:
        ConfigError: it is nowhere.
        StateError: what ships with the project is torn.
    """
    where = place(data_dir)
    try:
        return task.read(_Probe(where.folder, where.demanded)).source
    except _FoundError as found:
        return str(found.path)
