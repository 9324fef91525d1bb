"""The private home of one Flower run: a temporary folder, and a record that outlives a crash.

The record stands under ``$FEDFREEZE_HOME/flower/RUN`` and names the processes and the temporary
folder, so that ``fedfreeze clean`` finds both after a power cut or a ``kill -9``.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from cli import processes
from fedfreeze import plain_json
from fedfreeze.run_folder import home, writing

_PREFIX = "fedfreeze-"
_RECORD = "process.json"


@dataclass(frozen=True)
class Record:
    """Who runs a private SuperLink, and where.

    Attributes:
        marker: value of the environment variable that its processes carry.
        owner_pid: the ``fedfreeze run`` that started it.
        owner_created_at_s: when that process started, seconds since the epoch.
        workspace: the temporary folder.
    """

    marker: str
    owner_pid: int
    owner_created_at_s: float
    workspace: str

    @property
    def owner_is_alive(self) -> bool:
        """Whether the command that started it still runs."""
        return processes.is_alive(self.owner_pid, self.owner_created_at_s)


@dataclass(frozen=True)
class Workspace:
    """The folders of one private SuperLink."""

    record_folder: Path
    record: Record

    @property
    def path(self) -> Path:
        """The temporary folder that holds all the others."""
        return Path(self.record.workspace)

    @property
    def flower_home(self) -> Path:
        """``FLWR_HOME`` of this run alone."""
        return self.path / "flwr"

    @property
    def cwd(self) -> Path:
        """An empty folder: Flower's workers import from their working directory first."""
        return self.path / "cwd"

    @property
    def app(self) -> Path:
        """Where the app is staged."""
        return self.path / "app"

    @property
    def log(self) -> Path:
        """What the SuperLink prints."""
        return self.path / "superlink.log"


def create(run_name: str) -> Workspace:
    """A new workspace and its record, owned by the calling process.

    Raises:
        ConfigError: nothing can be written where they stand.
    """
    folder = record_folder(run_name)
    # Ray puts sockets below it, and a socket's path may have 107 bytes: macOS' own is too long.
    short = "/tmp" if Path("/tmp").is_dir() else None  # noqa: S108  # mkdtemp makes it private
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=short)
        try:
            return _fill(folder, path)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
            raise


def _fill(folder: Path, path: str) -> Workspace:
    record = Record(
        marker=secrets.token_hex(8),
        owner_pid=os.getpid(),
        owner_created_at_s=processes.created_at_s(os.getpid()),
        workspace=path,
    )
    workspace = Workspace(folder, record)
    for inner in (workspace.flower_home, workspace.cwd, workspace.app):
        inner.mkdir()
    # In one step: half a record would be taken for none, and its folder cleaned away.
    temporary = folder / f".{_RECORD}.new"
    temporary.write_text(plain_json.text(asdict(record)), encoding="utf-8")
    temporary.replace(folder / _RECORD)
    return workspace


def record_folder(run_name: str) -> Path:
    """Where the record of a run's private SuperLink stands."""
    return home() / "flower" / run_name


def read_record(folder: Path) -> Record | None:
    """The record in a folder, or None where there is none that this project wrote."""
    try:
        data = plain_json.parse((folder / _RECORD).read_text(encoding="utf-8"))
        record = Record(**data)
    except (OSError, ValueError, TypeError):
        return None
    # It names processes to end and a folder to delete: believe none but those made above.
    if not (
        isinstance(record.marker, str)
        and record.marker
        and _is_process_id(record.owner_pid)
        and isinstance(record.owner_created_at_s, float)
        and isinstance(record.workspace, str)
        and Path(record.workspace).name.startswith(_PREFIX)
    ):
        return None
    return record


def remove(folder: Path, *, grace_s: float) -> int:
    """End the processes of a record and delete its folders; returns how many processes ran."""
    record = read_record(folder)
    ended = 0
    if record is not None:
        ended = processes.end(record.marker, grace_s=grace_s)
        shutil.rmtree(record.workspace, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    return ended


def _is_process_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31
