"""A board's state on disk: its residual, the packet nobody confirmed yet, and the model it holds.

Everything is a content-addressed blob but one small ``head.json`` that names the blobs of now.
:meth:`BoardStore.commit` writes blobs first and renames a new head over the old one last; files
and folders are flushed to the device in between. Whenever the power goes, the head names either
the state before the round or the state after it. Blobs of the model are shared by all boards of
one folder, so ten simulated boards keep one copy.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

from fedfreeze.errors import StateError
from fedfreeze.layout import Arrays

FORMAT = 1
_BLOB = re.compile(r"[0-9a-f]{32}")
# Short and in small letters: no such name equals another one with a digest, whatever the case.
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


@dataclass(frozen=True)
class Pending:
    """A packet that was sent and not settled yet.

    ``residual_before`` is what the residual was when the round began: doing the same round again
    starts from it.
    """

    round_number: int
    packet: bytes
    digest: str
    residual_before: Arrays


@dataclass(frozen=True)
class BoardState:
    """What a board must not forget between rounds.

    Attributes:
        residual: what it meant to send and has not sent, by tensor; absent is zero.
        model_version: of the published model it holds; None when it holds none.
    """

    residual: Arrays = field(default_factory=dict)
    pending: Pending | None = None
    model_version: int | None = None
    model: Arrays = field(default_factory=dict)


class BoardStore:
    """The state of one board for one run and one layout.

    Args:
        root: folder for all boards that share model blobs; several processes may use it.
        device_id: names the board's own folder; one process at a time uses it.
        run, fingerprint: a head of another run or layout counts as no state.
    """

    def __init__(self, root: Path, device_id: str, *, run: str, fingerprint: str) -> None:
        self._root = root
        self._own = root / "boards" / folder_name(device_id)
        self._models = root / "models"
        self._identity = {"format": FORMAT, "run": run, "fingerprint": fingerprint}

    def load(self) -> BoardState:
        """The state as it was last committed; fresh if there is none for this run.

        Raises:
            StateError: a file is torn or not what was committed.
        """
        path = self._own / "head.json"
        try:
            head = json.loads(path.read_text(encoding="utf-8"))
            if any(head[key] != value for key, value in self._identity.items()):
                return BoardState()
            pending, model = head["pending"], head["model"]
            return BoardState(
                residual=load(self._read(self._own, head["residual"])),
                pending=pending
                and Pending(
                    round_number=int(pending["round"]),
                    packet=self._read(self._own, pending["packet"]),
                    digest=str(pending["digest"]),
                    residual_before=load(self._read(self._own, pending["residual_before"])),
                ),
                model_version=model and int(model["version"]),
                model=load(self._read(self._models, model["blob"])) if model else {},
            )
        except FileNotFoundError as error:
            if error.filename == str(path):
                return BoardState()
            raise self._torn(f"{error.filename} is missing") from error
        except (ValueError, KeyError, TypeError, SafetensorError) as error:
            raise self._torn(f"head.json: {error!r}") from error

    def commit(self, state: BoardState) -> None:
        """Make this the state, at once and for good."""
        self._own.mkdir(parents=True, exist_ok=True)
        self._models.mkdir(parents=True, exist_ok=True)
        pending = state.pending
        with _alone_in(self._root):
            head = {
                **self._identity,
                "residual": _write(self._own, save(dict(state.residual))),
                "pending": pending
                and {
                    "round": pending.round_number,
                    "digest": pending.digest,
                    "packet": _write(self._own, pending.packet),
                    "residual_before": _write(self._own, save(dict(pending.residual_before))),
                },
                "model": None
                if state.model_version is None
                else {
                    "version": state.model_version,
                    "blob": _write(self._models, save(dict(state.model))),
                },
            }
            _replace(self._own / "head.json", json.dumps(head).encode())
            self._sweep(head)

    def forget(self) -> None:
        """Throw the board's own state away, as after a torn file."""
        for path in self._own.glob("*"):
            path.unlink(missing_ok=True)

    def _read(self, folder: Path, name: Any) -> bytes:
        if not isinstance(name, str) or not _BLOB.fullmatch(name):
            raise self._torn(f"head.json: expected the name of a blob, got {name!r:.80}")
        data = (folder / name).read_bytes()
        if name != _digest(data):
            raise self._torn(f"{folder / name} does not have the content that its name says")
        return data

    def _torn(self, what: str) -> StateError:
        return StateError(
            f"{self._own}: the state of this board is torn ({what}); delete the folder to start "
            "afresh, at the loss of what the board has not sent yet"
        )

    def _sweep(self, head: dict[str, Any]) -> None:
        """Remove what no head names; nobody else is about to name it while the folder is held."""
        pending = head["pending"] or {}
        kept = {"head.json", head["residual"], *(str(value) for value in pending.values())}
        _keep_only(self._own, kept)
        held = set()
        for path in self._own.parent.glob("*/head.json"):
            try:
                model = json.loads(path.read_bytes())["model"]
                held.add(model and model["blob"])
            except (OSError, ValueError, KeyError, TypeError):
                return  # What that board holds is unknown, so every model stays.
        _keep_only(self._models, held)


def folder_name(device_id: str) -> str:
    """The id itself where it is a plain name; else a readable start and a digest."""
    if _PLAIN.fullmatch(device_id):
        return device_id
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", device_id)[:32]
    return f"{readable}-{_digest(device_id.encode())}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


@contextmanager
def _alone_in(root: Path) -> Iterator[None]:
    """Hold the folder; the lock goes with its process, so a crash leaves none behind."""
    with (root / ".lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _keep_only(folder: Path, names: set[Any]) -> None:
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink(missing_ok=True)


def _write(folder: Path, data: bytes) -> str:
    path = folder / (name := _digest(data))
    # A blob that rotted on the device is written anew: its name alone proves nothing.
    if not path.exists() or path.read_bytes() != data:
        _replace(path, data)
    return name


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
