"""The private home of one Flower run: a temporary folder, and a record that outlives a crash.

The record stands under ``$FEDFREEZE_HOME/flower/RUN`` and names the processes and the temporary
folder, so that ``fedfreeze clean`` finds both after a power cut or a ``kill -9``.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from cli import processes
from fedfreeze.run_folder import home

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
    """A new workspace and its record, owned by the calling process."""
    # Ray puts sockets below it, and a socket's path may have 107 bytes: macOS' own is too long.
    short = "/tmp" if Path("/tmp").is_dir() else None  # noqa: S108  # mkdtemp makes it private
    record = Record(
        marker=secrets.token_hex(8),
        owner_pid=os.getpid(),
        owner_created_at_s=processes.created_at_s(os.getpid()),
        workspace=tempfile.mkdtemp(prefix=_PREFIX, dir=short),
    )
    workspace = Workspace(record_folder(run_name), record)
    for folder in (workspace.flower_home, workspace.cwd, workspace.app, workspace.record_folder):
        folder.mkdir(parents=True, exist_ok=True)
    (workspace.record_folder / _RECORD).write_text(json.dumps(asdict(record)), encoding="utf-8")
    return workspace


def record_folder(run_name: str) -> Path:
    """Where the record of a run's private SuperLink stands."""
    return home() / "flower" / run_name


def read_record(folder: Path) -> Record | None:
    """The record in a folder, or None where there is none that this project wrote."""
    try:
        record = Record(**json.loads((folder / _RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    # It names a folder that will be deleted: believe no other than the ones made above.
    if not Path(record.workspace).name.startswith(_PREFIX):
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
