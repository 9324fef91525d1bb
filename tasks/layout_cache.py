"""Layouts with their costs on disk, so that whoever only plans need not load torch.

``$FEDFREEZE_HOME/cache/layouts/KEY.json`` holds the layout of one task under one choice of options.
The key is a digest over all that a layout follows from: task, options, the project's own code and
the releases of the libraries that build and trace models. A changed one is another key, so nothing
here is ever out of date; old files are merely never read again. A task of the user's own may
import whatever it likes, so it has no key and is always traced.

A file that cannot be read, is damaged or is not what its digest says counts as absent.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path

from fedfreeze.code_digest import code_digest
from fedfreeze.errors import ConfigError, LayoutError
from fedfreeze.layout import Layout
from fedfreeze.run_folder import home
from tasks.cached_json import read_cached, write_cached
from tasks.options import AS_THE_TASK_IS, Options
from tasks.registry import TASKS

_LIBRARIES = ("torch", "torchvision", "timm", "transformers")


def cached_layout(
    task_name: str, options: Options | None = None, *, root: Path | None = None
) -> Layout | None:
    """The layout that was remembered for this task and these options; None if there is none.

    Args:
        task_name: as strategies name it.
        options: what the strategy chooses of the task.
        root: folder of the files (default: in :func:`fedfreeze.run_folder.home`).
    """
    path = _path(task_name, options, root)
    content = None if path is None else read_cached(path)
    try:
        return None if content is None else Layout.from_json(content)
    except (ValueError, LookupError, TypeError, AttributeError, LayoutError):
        return None


def remember(
    task_name: str, options: Options | None, layout: Layout, *, root: Path | None = None
) -> bool:
    """Keep a layout for the next time; whether that was possible.

    The file appears at once and whole, whoever else writes it. A disk that cannot be written is no
    error: the layout is traced again.
    """
    path = _path(task_name, options, root)
    return path is not None and write_cached(path, layout.to_json())


def layout_key(task_name: str, options: Options | None) -> str | None:
    """32 hex digits over all that the layout follows from; None for a task of the user's own."""
    if task_name not in TASKS:
        return None
    parts = [task_name, asdict(options or AS_THE_TASK_IS), code_digest(), _releases()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@cache
def _releases() -> dict[str, str | None]:
    """Of the libraries by name; None for one that is not installed."""
    found: dict[str, str | None] = {}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _path(task_name: str, options: Options | None, root: Path | None) -> Path | None:
    key = layout_key(task_name, options)
    if key is None:
        return None
    try:
        folder = home() / "cache" / "layouts" if root is None else root
    except ConfigError:  # no such home; whoever needs one says so
        return None
    return folder / f"{key}.json"
