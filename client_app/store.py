"""A board's state on disk: its residual, the packet nobody confirmed yet, and the model it holds.

Everything is a content-addressed blob but one small ``head.json`` that names the blobs of now.
:meth:`BoardStore.commit` writes blobs first and renames a new head over the old one last; files
and folders are flushed to the device in between. Whenever the power goes, the head names either
the state before the round or the state after it. Blobs of the model are shared by all boards of
one folder, so ten simulated boards keep one copy.

A residual in float16 (:class:`compression.Halves`) is written as it is: its blob holds ``q.NAME``,
the values, and ``e.NAME``, the exponent, for each tensor, and the head says ``float16``.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from compression import Half, Halves, SharedMask
from fedfreeze.errors import StateError
from fedfreeze.layout import Arrays

# 2 added the history and residuals in float16; heads of 1 are read as well.
FORMAT = 2
_READ = (1, 2)
_BLOB = re.compile(r"[0-9a-f]{32}")
# Short and in small letters: no such name equals another one with a digest, whatever the case.
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


@dataclass(frozen=True)
class History:
    """What a board remembers of its rounds, by their numbers.

    Attributes:
        trained_round: the last one in which it trained; None where nobody knows of any.
        since: by layer, the round in which a packet last carried its residual, or, where none has
            yet, in which the residual began.
        ranges: by layer, how large its values have lately been, which mode literal alone needs
            (:func:`compression.value_ranges`).
    """

    trained_round: int | None = None
    since: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Pending:
    """A packet that was sent and not settled yet.

    ``residual_before`` and ``history_before`` are what they were when the round began, before any
    rule for residuals that wait was applied: doing the same round again starts from them.
    ``rounding_norm`` is what rounding lost until then in that round. ``mask`` says which values the
    packet carries, where it does not say so itself.
    """

    round_number: int
    packet: bytes
    digest: str
    residual_before: Arrays
    history_before: History = field(default_factory=History)
    rounding_norm: float = 0.0
    mask: SharedMask | None = None


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
    history: History = field(default_factory=History)


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
        self._identity = {"run": run, "fingerprint": fingerprint}

    def load(self) -> BoardState:
        """The state as it was last committed; fresh if there is none for this run and layout.

        Raises:
            StateError: a file is torn or not what was committed.
        """
        return self._from_head(self._of_this_layout) or BoardState()

    def load_other_layout(self) -> BoardState | None:
        """Residual and history of the last commit, if that was of this run and another layout.

        Nothing else of it is of use: its packet can be decoded with its own layout alone.

        Raises:
            StateError: a file is torn or not what was committed.
        """
        return self._from_head(self._of_other_layout)

    def commit(self, state: BoardState) -> None:
        """Make this the state, at once and for good."""
        self._own.mkdir(parents=True, exist_ok=True)
        self._models.mkdir(parents=True, exist_ok=True)
        pending = state.pending
        with _alone_in(self._root):
            head = {
                "format": FORMAT,
                **self._identity,
                **self._written("residual", state.residual),
                "history": _history_json(state.history),
                "pending": pending
                and {
                    "round": pending.round_number,
                    "digest": pending.digest,
                    "packet": _write(self._own, pending.packet),
                    **self._written("residual_before", pending.residual_before),
                    "history_before": _history_json(pending.history_before),
                    "rounding_norm": pending.rounding_norm,
                    "mask": pending.mask and asdict(pending.mask),
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

    def _from_head(self, part: Callable[[dict[str, Any]], BoardState | None]) -> BoardState | None:
        path = self._own / "head.json"
        try:
            return part(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            if error.filename == str(path):
                return None
            raise self._torn(f"{error.filename} is missing") from error
        except (ValueError, KeyError, TypeError, SafetensorError) as error:
            raise self._torn(f"head.json: {error!r}") from error

    def _of_this_layout(self, head: dict[str, Any]) -> BoardState | None:
        known = head["format"] in _READ
        if not known or any(head[key] != value for key, value in self._identity.items()):
            return None
        pending, model = head["pending"], head["model"]
        # Heads of the first release hold no history; all they tell is the round of their packet.
        first = History(int(pending["round"])) if pending else History()
        return BoardState(
            residual=self._arrays(head, "residual"),
            pending=pending
            and Pending(
                round_number=int(pending["round"]),
                packet=self._read(self._own, pending["packet"]),
                digest=str(pending["digest"]),
                residual_before=self._arrays(pending, "residual_before"),
                history_before=_history(pending.get("history_before")) or History(),
                rounding_norm=float(pending.get("rounding_norm", 0)),
                mask=_mask(pending.get("mask")),
            ),
            model_version=model and int(model["version"]),
            model=load(self._read(self._models, model["blob"])) if model else {},
            history=_history(head.get("history")) or first,
        )

    def _of_other_layout(self, head: dict[str, Any]) -> BoardState | None:
        same_run = head["format"] in _READ and head["run"] == self._identity["run"]
        if not same_run or head["fingerprint"] == self._identity["fingerprint"]:
            return None
        return BoardState(
            residual=self._arrays(head, "residual"),
            history=_history(head.get("history")) or History(),
        )

    def _written(self, key: str, arrays: Arrays) -> dict[str, str]:
        """The entries of a head for a residual; float32 is not mentioned."""
        if not isinstance(arrays, Halves):
            return {key: _write(self._own, save(dict(arrays)))}
        return {key: _write(self._own, _halves_bytes(arrays)), f"{key}_precision": "float16"}

    def _arrays(self, entries: dict[str, Any], key: str) -> Arrays:
        arrays = load(self._read(self._own, entries[key]))
        precision = entries.get(f"{key}_precision", "float32")
        if precision not in {"float32", "float16"}:
            raise ValueError(f"{key}_precision: {precision!r}")
        return _halves(arrays) if precision == "float16" else arrays

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


def _history_json(history: History) -> dict[str, Any]:
    return {
        "trained_round": history.trained_round,
        "since": dict(history.since),
        "ranges": dict(history.ranges),
    }


def _history(entry: Any) -> History | None:
    """None where a head has no such entry."""
    if entry is None:
        return None
    trained, since = entry["trained_round"], entry["since"]
    return History(
        None if trained is None else int(trained),
        {str(layer): int(number) for layer, number in dict(since).items()},
        {str(layer): float(most) for layer, most in dict(entry.get("ranges", {})).items()},
    )


def _mask(entry: Any) -> SharedMask | None:
    """None where positions travel in the packet, as in all of earlier releases."""
    if entry is None:
        return None
    return SharedMask(int(entry["seed"]), int(entry["round_number"]), int(entry["share"]))


def _halves_bytes(halves: Halves) -> bytes:
    tensors: dict[str, NDArray[Any]] = {}
    for name, half in halves.tensors.items():
        tensors[f"q.{name}"] = half.values
        tensors[f"e.{name}"] = np.array(half.exponent, np.int16)
    return save(tensors)


def _halves(arrays: Arrays) -> Halves:
    names = [name[2:] for name in arrays if name.startswith("q.")]
    return Halves(
        {name: Half(arrays[f"q.{name}"], int(arrays[f"e.{name}"].item())) for name in names}
    )


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
