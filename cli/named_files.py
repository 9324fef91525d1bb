"""Files and folders that a strategy or a command names by path."""

from __future__ import annotations

import os
from pathlib import Path

from fedfreeze.errors import ConfigError
from strategies.schema import Strategy
from tasks.sources import expanded


def beside(name: str, strategy: str) -> Path | None:
    """The file of that name; None if there is none.

    Args:
        name: looked for beside the strategy's file, then in the working directory.
        strategy: the preset or file that names it.
    """
    return next((place for place in places(name, strategy) if place.is_file()), None)


def places(name: str, strategy: str) -> tuple[Path, ...]:
    """Where :func:`beside` looks."""
    return (Path(strategy).parent / name, Path(name).expanduser())


def weights_file(pretrained: str | None, strategy: str) -> str | None:
    """The absolute path of a file of weights; None if the name means no file here."""
    path = None if pretrained is None else beside(pretrained, strategy)
    return None if path is None else str(path.absolute())


def at_hand(read: Strategy, strategy: str) -> Strategy:
    """The strategy for this process, with the paths of the files that it names filled in.

    Args:
        read: as it was written.
        strategy: the preset or file that it was read from.
    """
    path = beside(read.task, strategy) if read.task.endswith(".py") else None
    weights = weights_file(read.model.pretrained, strategy)
    model = read.model if weights is None else read.model.model_copy(update={"pretrained": weights})
    task = read.task if path is None else str(path.absolute())
    return read.model_copy(update={"task": task, "model": model})


def data_folder(data_dir: str | None) -> str | None:
    """The folder as an absolute path; None if nobody named one.

    Raises:
        ConfigError: it is no folder.
    """
    if data_dir is None:
        return None
    folder = expanded(data_dir, "--data-dir")
    if not (data_dir and os.path.isdir(folder)):  # noqa: PTH112  # never raises
        raise ConfigError(f'--data-dir: expected a folder, "{data_dir}" is none')
    return str(folder.absolute())
