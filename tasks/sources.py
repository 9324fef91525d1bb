"""Where a task's data may come from.

In this order: the folder that a node or a command names (``data-dir``), the folder in the
environment variable ``FEDFREEZE_DATA_DIR``, an installed package, the part that ships with the
project. Nothing is downloaded unless a command was asked to.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedfreeze.errors import ConfigError

VARIABLE = "FEDFREEZE_DATA_DIR"


@dataclass(frozen=True)
class Place:
    """The folder that holds data sets, if there is one.

    Attributes:
        folder: where to look first; None if nobody said.
        demanded: whether data that is not there is an error. It is when a node or a command named
            the folder; the environment variable is only a place to look.
    """

    folder: Path | None = None
    demanded: bool = False

    def find(self, what: str, candidates: Sequence[str]) -> Path | None:
        """The first of these files or folders that exists below the folder.

        Args:
            what: the data set, for the message.
            candidates: paths below the folder, the usual one first.

        Raises:
            ConfigError: the folder was demanded and has none of them.
        """
        if self.folder is None:
            return None
        for candidate in candidates:
            path = self.folder / candidate
            if os.path.exists(path):  # noqa: PTH110  # never raises
                return path
        if self.demanded:
            raise ConfigError(
                f"data-dir: expected {what} in {self.folder} as {' or '.join(candidates)}, "
                "found none of these"
            )
        return None

    def need(self, what: str, candidates: Sequence[str]) -> Path:
        """As :meth:`find`, for data that is nowhere else.

        Raises:
            ConfigError: there is none.
        """
        path = self.find(what, candidates)
        if path is None:
            raise ConfigError(
                f"expected {what} as {' or '.join(candidates)} below a data folder, found none; "
                f"name the folder with --data-dir, with data-dir in a board's node config, or "
                f"with {VARIABLE}"
            )
        return path


def place(data_dir: str | None) -> Place:
    """The named folder, or the one in the environment, or none."""
    if data_dir:
        return Place(expanded(data_dir, "data-dir"), demanded=True)
    variable = os.environ.get(VARIABLE)
    return Place(expanded(variable, VARIABLE) if variable else None)


def expanded(folder: str, source: str) -> Path:
    """The path with ``~`` filled in.

    Args:
        folder: as somebody wrote it.
        source: where, for the message.

    Raises:
        ConfigError: it begins with the home of a user that is not known here.
    """
    try:
        return Path(folder).expanduser()
    except RuntimeError as error:
        home = Path(folder).parts[0]
        raise ConfigError(
            f'{source}: expected a folder, got "{folder}", and this machine knows no home '
            f"{home}; write the path in full"
        ) from error


def missing(what: str, candidates: Sequence[str], command: str) -> ConfigError:
    """The error of a data set that is in no place and does not ship with the project.

    Args:
        what: the data set.
        candidates: where it would be below a data folder, the usual one first.
        command: what fetches it, or where to get it.
    """
    variable = os.environ.get(VARIABLE)
    looked = f", nor in {VARIABLE}={variable}" if variable else ""
    return ConfigError(
        f"{what} does not ship with the project and was found nowhere{looked}; put it below a "
        f"folder as {' or '.join(candidates)} and name that folder with data-dir or {VARIABLE}; "
        f"{command}"
    )
