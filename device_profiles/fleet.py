"""A fleet: which boards take part, in order, and which of them a simulated client stands for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import tomli
import tomli_w
from pydantic import AfterValidator, Field, PlainValidator

from device_profiles.board import Board, Spread, boards, load_board
from device_profiles.presence import ALWAYS, Battery, Presence, Trace, checked
from device_profiles.trace_file import read_trace
from fedfreeze import strict_toml
from fedfreeze.errors import ConfigError
from fedfreeze.settings import Settings
from fedfreeze.toml_faults import did_you_mean
from fedfreeze.toml_lines import key_lines, line_of

_FOLDER = resources.files("device_profiles") / "fleets"


def _known(profile: str) -> str:
    if profile not in (known := boards()):
        near = did_you_mean(profile, known)
        raise ValueError(f'unknown board "{profile}"; the boards are {", ".join(known)}{near}')
    return profile


class Entry(Settings):
    """``count`` boards of one profile that take part in the same way.

    Attributes:
        availability: see :class:`device_profiles.presence.Presence`; or the path of a file of
            windows, beside the fleet's own.
        bandwidth_jitter: spread of both directions of the link, over the profile's own.
        battery: what the boards run on; none where they are fed from the mains.
    """

    profile: Annotated[str, AfterValidator(_known)]
    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    availability: Annotated[float | Trace | str, PlainValidator(checked)] = 1.0
    bandwidth_jitter: Spread | None = None
    battery: Battery | None = None

    def board(self) -> Board:
        """The profile with this entry's link.

        Raises:
            ConfigError: see :func:`device_profiles.board.load_board`.
        """
        board = load_board(self.profile)
        if self.bandwidth_jitter is None:
            return board
        swing = {"spread": self.bandwidth_jitter}
        links = {name: getattr(board, name).model_copy(update=swing) for name in _LINKS}
        return board.model_copy(update=links)


_LINKS = ("uplink", "downlink")


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
        presences: how each device takes part; empty where all of them always do.
    """

    name: str
    entries: tuple[Board, ...]
    presences: tuple[Presence, ...] = ()

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self.entries)

    @property
    def weakest(self) -> Board:
        """The board with the least memory, the slower one where two have the same."""
        return min(self.entries, key=lambda board: (board.memory.value, board.flops.value))

    def board(self, index: int, clients: int) -> Board:
        """The board of client ``index`` of 0 ... ``clients`` - 1.

        As many clients as devices: entry ``index``. Fewer: evenly spread entries that include the
        first and the last (a single client is the first). More: the fleet repeats.

        Raises:
            ConfigError: ``index`` is not among the clients.
        """
        return self.entries[self._place(index, clients)]

    def presence(self, index: int, clients: int) -> Presence:
        """How the client that :meth:`board` is about takes part.

        Raises:
            ConfigError: ``index`` is not among the clients.
        """
        place = self._place(index, clients)
        return self.presences[place] if self.presences else ALWAYS

    def _place(self, index: int, clients: int) -> int:
        if not 0 <= index < clients:
            raise ConfigError(f"client {index} is not one of {clients} clients, counted from 0")
        if clients >= self.size or clients == 1:
            return index % self.size
        # Whole numbers only: rounding must not differ between platforms.
        gaps = clients - 1
        return (2 * index * (self.size - 1) + gaps) // (2 * gaps)


def fleets() -> tuple[str, ...]:
    """Names of the fleets that ship with the project, sorted."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def fleet_from_text(text: str, file: str, *, folder: Path | None = None) -> Fleet:
    r"""The fleet that a TOML text describes.

    Args:
        text: a TOML document.
        file: what messages call it; its stem is the fleet's name.
        folder: what paths of traces are relative to; None where a path means nothing, because the
            text came from another host.

    Raises:
        ConfigError: the text is no fleet, or names a board or a trace that there is not.

    >>> fleet_from_text('[[board]]\nprofile = "laptop"\ncount = 2', "mine.toml").size
    2
    """
    written = strict_toml.read(text, FleetFile, file=file)
    presences = _presences(written, text, file, folder)
    entries = [entry.board() for entry in written.board]
    counts = [entry.count for entry in written.board]
    return Fleet(
        name=Path(file).stem,
        entries=_repeated(entries, counts),
        presences=() if set(presences) <= {ALWAYS} else _repeated(presences, counts),
    )


def fleet_text(name_or_path: str) -> str:
    """The TOML of a fleet by its name, or of a file by a path that ends in ``.toml``.

    The windows of traces in other files stand in it, so that it means the same on every host.

    Raises:
        ConfigError: no such fleet, or the file or a trace cannot be read.
    """
    text, file, folder = _read(name_or_path)
    if folder is None:
        return text
    try:
        document = tomli.loads(text)
    except (ValueError, RecursionError):
        return text  # whoever reads the fleet says what is wrong with it
    named = [entry for entry in _tables(document) if isinstance(entry.get("availability"), str)]
    if not named:
        return text
    fleet_from_text(text, file, folder=folder)
    for entry in named:
        entry["availability"] = read_trace(folder / entry["availability"])
    return tomli_w.dumps(document)


def load_fleet(name_or_path: str) -> Fleet:
    """The fleet of :func:`fleet_text`.

    Raises:
        ConfigError: no such fleet, no such file, or the file is no fleet.

    >>> load_fleet("mixed").size
    10
    """
    text, file, folder = _read(name_or_path)
    return fleet_from_text(text, file, folder=folder)


def _read(name_or_path: str) -> tuple[str, str, Path | None]:
    """The text of a fleet, what messages call it, and the folder of a file of one's own."""
    known = fleets()
    if name_or_path in known:
        shipped = (_FOLDER / f"{name_or_path}.toml").read_text("utf-8")
        return shipped, f"fleets/{name_or_path}.toml", None
    if not name_or_path.endswith(".toml"):
        raise ConfigError(
            f'unknown fleet "{name_or_path}"; the fleets are {", ".join(known)}, '
            f"or give a path that ends in .toml{did_you_mean(name_or_path, known)}"
        )
    path = Path(name_or_path)
    try:
        return path.read_text("utf-8-sig"), name_or_path, path.parent
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name_or_path}: cannot be read as a fleet: {error}") from error


def _tables(document: dict[str, Any]) -> list[dict[str, Any]]:
    entries = document.get("board")
    return [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []


def _presences(
    written: FleetFile, text: str, file: str, folder: Path | None
) -> tuple[Presence, ...]:
    """One for each entry, with the windows of traces in place of their paths."""
    found: list[Presence] = []
    problems = []
    for at, entry in enumerate(written.board):
        try:
            found.append(Presence(_windows(entry.availability, folder), entry.battery))
        except ValueError as error:
            line = line_of(("board", at, "availability"), key_lines(text))
            problems.append(f"{file}:{line}: board[{at}].availability: {error}")
    if problems:
        count = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
        raise ConfigError(problems, f"{count} in {file}. Nothing was started.")
    return tuple(found)


def _windows(availability: float | Trace | str, folder: Path | None) -> float | Trace:
    if not isinstance(availability, str):
        return availability
    if folder is None:
        raise ValueError(
            f'expected windows [from, to], got the path "{availability}", which means nothing on '
            "this host; send the text of `fedfreeze.fleet_text(...)`"
        )
    return read_trace(folder / availability)


def _repeated(values: Any, counts: list[int]) -> tuple[Any, ...]:
    return tuple(v for v, count in zip(values, counts, strict=True) for _ in range(count))
