"""A fleet: which boards take part, in order, and which of them a simulated client stands for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from device_profiles.board import Board, boards, load_board
from fedfreeze import strict_toml
from fedfreeze.errors import ConfigError
from fedfreeze.settings import Settings
from fedfreeze.toml_faults import did_you_mean

_FOLDER = resources.files("device_profiles") / "fleets"


def _known(profile: str) -> str:
    if profile not in (known := boards()):
        near = did_you_mean(profile, known)
        raise ValueError(f'unknown board "{profile}"; the boards are {", ".join(known)}{near}')
    return profile


class Entry(Settings):
    """``count`` boards of one profile."""

    profile: Annotated[str, AfterValidator(_known)]
    count: Annotated[int, Field(ge=1, le=10_000)] = 1


def _not_empty(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    if not entries:
        raise ValueError("expected at least one [[board]] table, got an empty array")
    return entries


class FleetFile(Settings):
    """A fleet as people write it: one ``[[board]]`` table for each kind of board."""

    description: str = ""
    board: Annotated[tuple[Entry, ...], AfterValidator(_not_empty)]


@dataclass(frozen=True)
class Fleet:
    """Boards in a fixed order.

    Attributes:
        name: the file's name without its ending.
        entries: one board for each device.
    """

    name: str
    entries: tuple[Board, ...]

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self.entries)

    def board(self, index: int, clients: int) -> Board:
        """The board of client ``index`` of 0 ... ``clients`` - 1.

        As many clients as devices: entry ``index``. Fewer: evenly spread entries that include the
        first and the last (a single client is the first). More: the fleet repeats.

        Raises:
            ConfigError: ``index`` is not among the clients.
        """
        if not 0 <= index < clients:
            raise ConfigError(f"client {index} is not one of {clients} clients, counted from 0")
        if clients >= self.size or clients == 1:
            return self.entries[index % self.size]
        # Whole numbers only: rounding must not differ between platforms.
        gaps = clients - 1
        return self.entries[(2 * index * (self.size - 1) + gaps) // (2 * gaps)]


def fleets() -> tuple[str, ...]:
    """Names of the fleets that ship with the project, sorted."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def fleet_from_text(text: str, file: str) -> Fleet:
    r"""The fleet that a TOML text describes.

    Raises:
        ConfigError: the text is no fleet, or names a board that there is not.

    >>> fleet_from_text('[[board]]\nprofile = "laptop"\ncount = 2', "mine.toml").size
    2
    """
    written = strict_toml.read(text, FleetFile, file=file)
    entries = [(load_board(entry.profile), entry.count) for entry in written.board]
    return Fleet(
        name=Path(file).stem,
        entries=tuple(board for board, count in entries for _ in range(count)),
    )


def fleet_text(name_or_path: str) -> str:
    """The TOML of a fleet by its name, or of a file by a path that ends in ``.toml``.

    Raises:
        ConfigError: no such fleet, or the file cannot be read.
    """
    known = fleets()
    if name_or_path in known:
        return (_FOLDER / f"{name_or_path}.toml").read_text("utf-8")
    if not name_or_path.endswith(".toml"):
        raise ConfigError(
            f'unknown fleet "{name_or_path}"; the fleets are {", ".join(known)}, '
            f"or give a path that ends in .toml{did_you_mean(name_or_path, known)}"
        )
    try:
        return Path(name_or_path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name_or_path}: cannot be read as a fleet: {error}") from error


def load_fleet(name_or_path: str) -> Fleet:
    """The fleet of :func:`fleet_text`.

    Raises:
        ConfigError: no such fleet, no such file, or the file is no fleet.

    >>> load_fleet("mixed").size
    10
    """
    shipped = name_or_path in fleets()
    file = f"fleets/{name_or_path}.toml" if shipped else name_or_path
    return fleet_from_text(fleet_text(name_or_path), file)
