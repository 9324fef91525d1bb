"""What a run leaves behind: the names of its files, and the state that says how it ended.

The server writes the folder and the command line reads it; both know it only through here.
Runs live under ``$FEDFREEZE_HOME/runs`` (``~/.fedfreeze/runs`` unless set).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from fedfreeze import plain_json
from fedfreeze.errors import ConfigError, StateError

RunState = Literal["running", "finished", "failed"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class RunFailure:
    """Why a run failed, as its server saw it."""

    type: str
    message: str
    exit_code: int

    @classmethod
    def of(cls, error: BaseException) -> RunFailure:
        """The failure that an exception stands for; foreign exceptions end with exit code 7.

        >>> RunFailure.of(StateError("torn"))
        RunFailure(type='StateError', message='torn', exit_code=5)
        """
        return cls(type(error).__name__, str(error), int(getattr(error, "exit_code", 7)))


@dataclass(frozen=True)
class RunStatus:
    """How far a run is, or how it ended.

    Attributes:
        state: "running" until the server says otherwise; a killed server leaves it so.
        rounds_done: rounds that are complete.
        rounds: rounds that were asked for.
        error: present if and only if the run failed.
        summary: final figures, by the names of ``rounds.jsonl`` where they are the same thing.
    """

    state: RunState
    rounds_done: int
    rounds: int
    error: RunFailure | None = None
    summary: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run's files. Nothing is created by naming them."""

    path: Path

    @property
    def name(self) -> str:
        """What ``fedfreeze run --resume`` takes."""
        return self.path.name

    @property
    def holds_a_run(self) -> bool:
        """Whether a run wrote anything here."""
        named = (self.request, self.config, self.status, self.rounds)
        return any(os.path.isfile(path) for path in named)  # noqa: PTH113  # never raises

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all stands here. Raises OSError if the folder cannot be listed."""
        return next(self.path.iterdir(), None) is None

    def written_at_s(self) -> float:
        """When something was last written here, seconds since the epoch.

        A run that goes on replaces its files at any moment: those that have just vanished, and
        links that lead nowhere, are passed over.

        Raises:
            OSError: the folder cannot be listed.
        """
        moments = [self.path.stat().st_mtime]
        for path in self.path.iterdir():
            with contextlib.suppress(OSError):
                moments.append(path.lstat().st_mtime)
        return max(moments)

    @property
    def config(self) -> Path:
        """The resolved strategy with versions and seed, written by the server."""
        return self.path / "config.toml"

    @property
    def strategy(self) -> Path:
        """The strategy text as it was submitted."""
        return self.path / "strategy.toml"

    @property
    def fleet(self) -> Path:
        """The fleet text as it was submitted."""
        return self.path / "fleet.toml"

    @property
    def request(self) -> Path:
        """What the command line asked for beside the two texts, so that it can ask again."""
        return self.path / "request.json"

    @property
    def rounds(self) -> Path:
        """One JSON object a round."""
        return self.path / "rounds.jsonl"

    @property
    def decisions(self) -> Path:
        """The audit log: one JSON object for each client and round."""
        return self.path / "decisions.jsonl"

    @property
    def checkpoint(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoint"

    @property
    def model(self) -> Path:
        """The final model."""
        return self.path / "model.safetensors"

    @property
    def status(self) -> Path:
        """How far the run is, or how it ended."""
        return self.path / "status.json"

    @property
    def simulated_boards(self) -> Path:
        """What the boards of a simulation keep between rounds."""
        return self.path / "simulated-boards"

    @property
    def flower_log(self) -> Path:
        """What the run printed, as Flower kept it."""
        return self.path / "flower.log"

    @property
    def superlink_log(self) -> Path:
        """What the SuperLink printed; kept only where it failed."""
        return self.path / "superlink.log"

    def write_status(self, status: RunStatus) -> None:
        """Replace ``status.json`` in one step, so that a reader never sees half of it."""
        document = {key: value for key, value in asdict(status).items() if value is not None}
        temporary = self.path / ".status.json.new"
        with temporary.open("w", encoding="utf-8") as file:
            file.write(plain_json.text(document))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.status)

    def read_status(self) -> RunStatus | None:
        """The state of the run, or None before its server wrote one.

        Raises:
            StateError: ``status.json`` cannot be read or is not what :meth:`write_status` writes.
        """
        try:
            content = self.status.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(
                f"{self.status}: expected a file that can be read, got: {error.strerror}; "
                "move it away if the run is over"
            ) from error
        try:
            status = _status_of(plain_json.parse(content.decode("utf-8")))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = content.decode("utf-8", errors="replace")
            raise StateError(
                f"{self.status}: expected a run's state, got {text!r:.100}; "
                "delete the file if the run is over"
            ) from error
        if status.state not in get_args(RunState):
            raise StateError(
                f"{self.status}: state is one of {', '.join(get_args(RunState))}, "
                f"got {status.state!r}"
            )
        return status


def home() -> Path:
    """Where runs and private Flower homes live: ``$FEDFREEZE_HOME``, else ``~/.fedfreeze``.

    Raises:
        ConfigError: it begins with the home of a user who has none.
    """
    chosen = os.environ.get("FEDFREEZE_HOME") or "~/.fedfreeze"
    try:
        return Path(chosen).expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError(
            f"expected a folder for runs, got {chosen}, and there is no such home; "
            "set FEDFREEZE_HOME to a folder that can be written"
        ) from error


@contextlib.contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn whatever keeps the block from writing into a ConfigError.

    Args:
        place: what to name where the system does not say which file it was.
    """
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{error.filename or place}: expected to write there, got: {error.strerror or error}; "
            "make room or change its permissions, or set FEDFREEZE_HOME to another folder"
        ) from error


def runs_home() -> Path:
    """The folder that holds one folder a run."""
    return home() / "runs"


def new_run_folder(
    stem: str, *, name: str | None = None, root: Path | None = None, now: datetime | None = None
) -> RunFolder:
    """Create the folder of a new run, ``STEM-YYYYmmdd-HHMMSS`` unless ``name`` is given.

    The name is taken by creating the folder, so two runs started in one second get different ones.

    Args:
        stem: usually the strategy file's name without its suffix.
        name: exact name to use instead.
        root: parent folder (default: :func:`runs_home`).
        now: local time for the name (default: the clock).

    Raises:
        ConfigError: ``name`` is taken or is not a plain folder name, or nothing can be written.
    """
    parent = runs_home() if root is None else root
    with writing(parent):
        parent.mkdir(parents=True, exist_ok=True)
        return _create(parent, stem, name, now)


def _create(parent: Path, stem: str, name: str | None, now: datetime | None) -> RunFolder:
    if name is not None:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f'a run\'s name is letters, digits, ".", "_" and "-" and begins with a letter or '
                f'digit, got "{name}"'
            )
        try:
            (parent / name).mkdir()
        except FileExistsError:
            raise ConfigError(
                f'there is a run "{name}" in {parent}; choose another --name, '
                f"or continue it with --resume {name}"
            ) from None
        return RunFolder(parent / name)
    moment = (datetime.now().astimezone() if now is None else now).strftime("%Y%m%d-%H%M%S")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "run"
    base = f"{plain[:60]}-{moment}"
    number = 1
    while True:
        candidate = parent / (base if number == 1 else f"{base}-{number}")
        try:
            candidate.mkdir()
        except FileExistsError:
            number += 1
        else:
            return RunFolder(candidate)


def find_run(name: str, root: Path | None = None) -> RunFolder:
    """The folder of a run by its name or by a path to it.

    Raises:
        ConfigError: there is no such run; the message names the latest ones.
    """
    parent = runs_home() if root is None else root
    if _NAME.fullmatch(name) and os.path.isdir(parent / name):  # noqa: PTH112  # never raises
        return RunFolder(parent / name)
    with contextlib.suppress(RuntimeError):  # "~nobody" is no path
        elsewhere = RunFolder(Path(name).expanduser().absolute())
        if elsewhere.holds_a_run:
            return elsewhere
    latest = ", ".join(run.name for run in all_runs(parent)[:3]) or "none"
    raise ConfigError(f'there is no run "{name}" in {parent}; the latest runs there: {latest}')


def all_runs(root: Path | None = None) -> list[RunFolder]:
    """Every run, the latest first."""
    parent = runs_home() if root is None else root
    found = []
    try:
        for path in parent.iterdir():
            with contextlib.suppress(OSError):  # deleted since it was listed
                if path.is_dir():
                    found.append((path.stat().st_mtime, path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(
            f"{parent}: expected a folder of runs, got: {error.strerror}; "
            "set FEDFREEZE_HOME to a folder that can be read and written"
        ) from error
    return [RunFolder(parent / name) for _, name in sorted(found, reverse=True)]


def _status_of(data: Any) -> RunStatus:
    """The state that a JSON document describes. Raises what wrong documents lead to."""
    failure, summary = data.get("error"), data.get("summary")
    if failure is not None:
        failure = RunFailure(
            str(failure["type"]), str(failure["message"]), _whole(failure["exit_code"])
        )
    if not isinstance(summary, dict | None):
        raise TypeError(summary)
    return RunStatus(
        state=data["state"],
        rounds_done=_whole(data["rounds_done"]),
        rounds=_whole(data["rounds"]),
        error=failure,
        summary=summary,
    )


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return value
