"""Checkpoints: the published model and all state of the server after a round.

A checkpoint is a folder that is filled under another name and renamed, so it is there whole or not
at all. The last two are kept: if the newest does not read back, the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from logging import WARNING
from pathlib import Path
from typing import Any

from flwr.common.logger import log
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fedfreeze.errors import StateError
from fedfreeze.layout import Arrays

KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """State after round ``number``.

    Attributes:
        arrays: the published model.
        state: everything else that is no array, as JSON values.
        memory: the arrays that the server keeps beside the model.
    """

    number: int
    arrays: Arrays
    state: Mapping[str, Any]
    memory: Arrays = field(default_factory=dict)


class CheckpointFolder:
    """The checkpoints of one run.

    Args:
        path: the folder; made when the first checkpoint is saved.
        identity: of strategy and layout; a checkpoint of another one is refused.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._path = path
        self._identity = identity

    def save(self, checkpoint: Checkpoint) -> None:
        """Write it whole, then drop all but the last two."""
        self._path.mkdir(parents=True, exist_ok=True)
        final = self._path / f"round-{checkpoint.number:06d}"
        temporary = self._path / f".new-{checkpoint.number:06d}"
        for unfinished in self._path.glob(".new-*"):
            shutil.rmtree(unfinished)
        temporary.mkdir()
        model, memory = save(dict(checkpoint.arrays)), save(dict(checkpoint.memory))
        state = {
            "number": checkpoint.number,
            "identity": self._identity,
            "model_sha256": hashlib.sha256(model).hexdigest(),
            "memory_sha256": hashlib.sha256(memory).hexdigest(),
            "state": dict(checkpoint.state),
        }
        _flushed(temporary / "model.safetensors", model)
        _flushed(temporary / "memory.safetensors", memory)
        _flushed(temporary / "state.json", json.dumps(state).encode())
        _flush_folder(temporary)
        shutil.rmtree(final, ignore_errors=True)
        temporary.rename(final)
        # Before the old ones go, the new name must be on the device.
        _flush_folder(self._path)
        for old in sorted(self._path.glob("round-*"))[:-KEPT]:
            shutil.rmtree(old)

    def latest(self) -> Checkpoint | None:
        """The newest checkpoint that reads back; None if there is none at all.

        Raises:
            StateError: there are some, but none is whole, or it is of another strategy.
        """
        folders = sorted(self._path.glob("round-*"), reverse=True)
        problems = []
        for folder in folders:
            try:
                return self._read(folder)
            except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
                problems.append(f"{folder.name}: {error}")
                log(WARNING, "checkpoint %s does not read back (%s)", folder.name, error)
        if problems:
            raise StateError(
                f"no checkpoint in {self._path} reads back ({'; '.join(problems)}); start a new run"
            )
        return None

    def _read(self, folder: Path) -> Checkpoint:
        document = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        if document["identity"] != self._identity:
            raise StateError(
                f"{folder}: the checkpoint is of another strategy, model or data "
                f"({document['identity']}, this run is {self._identity}); resume with the "
                "strategy that the run was started with"
            )
        model, memory = (
            self._arrays(folder / f"{part}.safetensors", document[f"{part}_sha256"])
            for part in ("model", "memory")
        )
        return Checkpoint(int(document["number"]), model, document["state"], memory)

    def _arrays(self, path: Path, digest: str) -> Arrays:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"{path.name} does not have the digest of state.json")
        return load(data)


def _flushed(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
