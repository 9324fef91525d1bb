"""FEMNIST as LEAF's ``preprocess.sh`` writes it (Caldas et al., 2018).

Folders ``train`` and ``test`` hold ``all_data_*.json``, each ``{"users": [...], "num_samples":
[...], "user_data": {WRITER: {"x": [[784 numbers], ...], "y": [...]}}}``. Numbers go from 0 (ink) to
1 (paper).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.femnist_writer import HALVES, LABELS, SIDE, Writer
from tasks.datasets.reading import reading

_CHUNK = 1 << 20
# One writer has some hundred images of about 5,000 characters each.
_MOST_CHARACTERS = 64 << 20


def leaf_halves(folder: Path) -> dict[str, list[Writer]]:
    """The writers of the training and of the test half.

    Raises:
        ConfigError: a half has no file.
        StateError: a file is torn or not what it should be.
    """
    return {half: _writers(folder / half) for half in HALVES}


def _writers(folder: Path) -> list[Writer]:
    files = sorted(folder.glob("all_data_*.json"))
    if not files:
        raise ConfigError(
            f"{folder}: expected LEAF's all_data_*.json files, found none; "
            "run LEAF's preprocess.sh to its end"
        )
    return [writer for path in files for writer in _read(path)]


def _read(path: Path) -> Iterator[Writer]:
    """One writer after the other: a file may be far larger than its images."""
    with reading(path), path.open(encoding="utf-8") as file:
        for name, values in _entries(_Text(file, path)):
            yield Writer(name, *_arrays(path, name, values))


class _Text:
    """A file read up to one mark after the other."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self._file, self._path, self._rest = file, path, ""

    def until(self, mark: str) -> str:
        """Everything up to and with the next ``mark``."""
        seen = 0
        while (at := self._rest.find(mark, seen)) < 0:
            # The mark may lie across two chunks.
            seen = max(0, len(self._rest) - len(mark) + 1)
            chunk = self._file.read(_CHUNK)
            if not chunk:
                raise StateError(f"{self._path}: ends before {mark}; make the file again")
            self._rest += chunk
            if len(self._rest) > _MOST_CHARACTERS:
                raise StateError(
                    f"{self._path}: expected {mark} within {_MOST_CHARACTERS} characters; "
                    "is this one of LEAF's files?"
                )
        end = at + len(mark)
        text, self._rest = self._rest[:end], self._rest[end:]
        return text

    def next(self) -> str:
        """The next character that is not blank."""
        while not (rest := self._rest.lstrip()):
            self._rest = self._file.read(_CHUNK)
            if not self._rest:
                raise StateError(f"{self._path}: ends within user_data; make the file again")
        self._rest = rest[1:]
        return rest[0]


def _entries(text: _Text) -> Iterator[tuple[str, Any]]:
    """The members of ``user_data``; their values hold no braces of their own."""
    text.until('"user_data"')
    text.until("{")
    while (character := text.next()) != "}":
        if character == ",":
            continue
        name = json.loads(character + text.until('"'))
        text.until("{")
        yield name, json.loads("{" + text.until("}"))


def _arrays(path: Path, name: str, values: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    try:
        pixels = np.asarray(values["x"], np.float32).reshape(-1, SIDE * SIDE)
        labels = np.asarray(values["y"], np.int64).reshape(-1)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StateError(
            f"{path}: writer {name}: expected x with {SIDE * SIDE} numbers an image and y with "
            f"their classes, got something else: {error}"
        ) from error
    fine = ((pixels >= 0) & (pixels <= 1)).all() and ((labels >= 0) & (labels < len(LABELS))).all()
    if len(pixels) != len(labels) or not fine:
        raise StateError(
            f"{path}: writer {name}: expected a class from 0 to {len(LABELS) - 1} for each image "
            "and numbers from 0 to 1, got others; is this another data set?"
        )
    return np.rint(pixels * 255).astype(np.uint8), labels
