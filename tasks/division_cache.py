"""How many examples each client holds, on disk, so that whoever only plans need not load torch.

``$FEDFREEZE_HOME/cache/divisions/KEY.json`` holds the counts of one division. As with layouts, the
key is a digest over all that they follow from: task, split, number of clients, the project's own
code and data files, what is installed, and what stands in the data folder. That is looked at by
names, sizes and times of change, three folders deep; a larger folder has no key, and neither has
a task of the user's own. A file that cannot be read or is damaged counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from fedfreeze.code_digest import code_digest
from fedfreeze.errors import ConfigError
from fedfreeze.run_folder import home
from tasks.cached_json import read_cached, write_cached
from tasks.partition import Split
from tasks.registry import TASKS
from tasks.sources import place

DEEPEST = 3
MOST_ENTRIES = 10_000

_SHIPPED = Path(__file__).parent / "data"


class _TooManyError(Exception):
    """A folder holds more than is looked at."""


def cached_examples(
    task_name: str,
    split: Split,
    clients: int,
    data_dir: str | None,
    *,
    root: Path | None = None,
) -> tuple[int, ...] | None:
    """Examples of each client as they were remembered; None if they were not.

    Args:
        task_name: as strategies name it.
        split: how the training set is divided.
        clients: among how many.
        data_dir: where the data is, if somebody said.
        root: folder of the files (default: in :func:`fedfreeze.run_folder.home`).

    Raises:
        ConfigError: the data folder begins with the home of a user that is not known here.
    """
    path = _path(task_name, split, clients, data_dir, root)
    counts = None if path is None else read_cached(path)
    if not isinstance(counts, list) or len(counts) != clients:
        return None
    return tuple(counts) if all(type(n) is int and n > 0 for n in counts) else None


def remember_examples(
    task_name: str,
    split: Split,
    examples: Sequence[int],
    data_dir: str | None,
    *,
    root: Path | None = None,
) -> bool:
    """Keep the counts for the next time; whether that was possible."""
    path = _path(task_name, split, len(examples), data_dir, root)
    return path is not None and write_cached(path, list(examples))


def _path(
    task_name: str, split: Split, clients: int, data_dir: str | None, root: Path | None
) -> Path | None:
    if task_name not in TASKS:
        return None
    try:
        data = [_seen(_SHIPPED), _seen(place(data_dir).folder)]
    except (OSError, _TooManyError):
        return None
    parts = [task_name, asdict(split), clients, data_dir or "", data, code_digest(), _installed()]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
    try:
        folder = home() / "cache" / "divisions" if root is None else root
    except ConfigError:  # no such home; whoever needs one says so
        return None
    return folder / f"{key}.json"


def _seen(folder: Path | None) -> list[tuple[str, int, int]]:
    """Path, size and time of change of what a folder holds, sorted."""
    found: list[tuple[str, int, int]] = []
    if folder is not None:
        for entry in _walked(str(folder), DEEPEST):
            if len(found) == MOST_ENTRIES:
                raise _TooManyError
            status = entry.stat()
            found.append((entry.path, status.st_size, status.st_mtime_ns))
    return sorted(found)


def _walked(folder: str, deep: int) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if deep > 1 and entry.is_dir():
                yield from _walked(entry.path, deep - 1)


def _installed() -> list[str]:
    """Names and releases of every installed package: some bring data sets."""
    found = set()
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208  # names alone, and fast
        except OSError:
            continue
        found |= {name for name in names if name.endswith((".dist-info", ".egg-info"))}
    return sorted(found)
