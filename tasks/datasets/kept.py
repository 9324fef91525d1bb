"""Decoded data, kept on disk so that later processes need not decode it again.

One folder a data set under ``$FEDFREEZE_HOME/cache``, named by what it was decoded from. It appears
by one rename, so it is never half there. Arrays are mapped, not read: ten simulated boards on one
machine share one copy in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedfreeze.run_folder import home
from tasks.datasets.reading import reading
from tasks.download import file_digest

_logger = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]

# Which arrays an entry holds, so that one that lost a file is not taken for whole.
_NAMES = "names.json"


class Allocate(Protocol):
    """Makes the array of that name, zeroed or not, to be filled in place."""

    def __call__(self, name: str, shape: tuple[int, ...], dtype: str = "uint8") -> NDArray[Any]:
        """An array that can be written to."""
        ...


def kept(name: str, origin: Path, decode: Callable[[Allocate], None]) -> Arrays:
    """The arrays that ``decode`` makes of ``origin``, from the cache if they are there.

    A cache that cannot be written costs time, not the run: the arrays then live in memory.

    Args:
        name: of the data set and the version of its decoder; changes when the decoder does.
        origin: the file, or the folder, that it is decoded from.
        decode: asks for each array once and fills it.

    Raises:
        StateError: ``origin`` cannot be read.
    """
    with reading(origin):
        folder = home() / "cache" / f"{name}-{fingerprint(origin)[:16]}"
    stored = _stored(folder)
    if stored is not None:
        return stored
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder.parent))
    except OSError as error:
        return _in_memory(decode, folder, error)
    try:
        return _on_disk(decode, unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def fingerprint(origin: Path) -> str:
    """SHA-256 of a file's content; of a folder, of the names, sizes and times of its files.

    Reading a hundred thousand small files takes as long as decoding them.
    """
    if origin.is_file():
        return file_digest(origin)
    digest = hashlib.sha256()
    for path in sorted(path for path in origin.rglob("*") if path.is_file()):
        status = path.stat()
        line = f"{path.relative_to(origin)}\0{status.st_size}\0{status.st_mtime_ns}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _stored(folder: Path) -> Arrays | None:
    if not folder.is_dir():
        return None
    try:
        # Copy on write: torch wants arrays that it may write to, and never does.
        return {
            name: np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False)
            for name in json.loads((folder / _NAMES).read_text("utf-8"))
        }
    except Exception as error:  # noqa: BLE001  # whatever a torn file makes numpy raise
        _logger.warning("%s: cannot be read and is made again: %s", folder, error)
        shutil.rmtree(folder, ignore_errors=True)
        return None


def _on_disk(decode: Callable[[Allocate], None], unfinished: Path, folder: Path) -> Arrays:
    def allocate(name: str, shape: tuple[int, ...], dtype: str = "uint8") -> NDArray[Any]:
        path = unfinished / f"{name}.npy"
        array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
        if hasattr(os, "posix_fallocate"):  # not on a Mac
            with path.open("r+b") as file:
                # A full disk shows here and not as a signal when the map is written to.
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        written[name] = array
        return array

    written: dict[str, np.memmap[Any, Any]] = {}
    try:
        decode(allocate)
        for array in written.values():
            array.flush()
        (unfinished / _NAMES).write_text(json.dumps([*written]), "utf-8")
    except OSError as error:
        return _in_memory(decode, folder, error)
    # Another process may have been faster; its arrays are the same.
    with contextlib.suppress(OSError):
        unfinished.rename(folder)
    stored = _stored(folder)
    return _in_memory(decode, folder, None) if stored is None else stored


def _in_memory(decode: Callable[[Allocate], None], folder: Path, error: OSError | None) -> Arrays:
    _logger.warning("%s: decoded data is not kept: %s", folder, error or "it cannot be read back")
    arrays: Arrays = {}

    def allocate(name: str, shape: tuple[int, ...], dtype: str = "uint8") -> NDArray[Any]:
        arrays[name] = np.empty(shape, dtype)
        return arrays[name]

    decode(allocate)
    return arrays
