"""FEMNIST as LEAF's ``preprocess.sh`` writes it (Caldas et al., 2018).

Folders ``train`` and ``test`` hold ``all_data_*.json``, each ``{"users": [...], "num_samples":
[...], "user_data": {WRITER: {"x": [[784 numbers], ...], "y": [...]}}}``. Numbers go from 0 (ink) to
1 (paper); classes are the ten digits, then the capital and the small letters.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from numpy.typing import NDArray

from fedfreeze.errors import ConfigError, StateError
from tasks.dataset import Dataset, Examples
from tasks.datasets.kept import Allocate, Arrays, kept
from tasks.datasets.reading import reading
from tasks.sources import Place, missing

LABELS = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)

SIDE = 28
_PLACES = ("femnist", "femnist/data", "leaf/data/femnist/data")
_HALVES = ("train", "test")
_CHUNK = 1 << 20
# One writer has some hundred images of about 5,000 characters each.
_MOST_CHARACTERS = 64 << 20


@dataclass(frozen=True)
class _Writer:
    """``uint8[n, 784]`` images and ``int64[n]`` classes of one person."""

    name: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


def femnist(place: Place) -> Dataset:
    """FEMNIST with the writer of each image as its group.

    Inputs are ``uint8[n, 1, 28, 28]``, targets ``int64[n]`` below 62. The same number is the same
    writer in both halves; LEAF's ``-t sample`` puts every writer into both.

    Raises:
        ConfigError: it is nowhere.
        StateError: a file is torn or not what it should be.
    """
    places = [f"{path}/train" for path in _PLACES]
    train_folder = place.find("FEMNIST", places)
    if train_folder is None:
        raise missing(
            "FEMNIST",
            places,
            "LEAF (github.com/TalwalkarLab/leaf) makes it: "
            "./preprocess.sh -s niid --sf 1.0 -k 0 -t sample in its data/femnist",
        )
    folder = train_folder.parent
    arrays = kept("femnist-1", folder, lambda allocate: _decode(folder, allocate))
    train, test = (_examples(arrays, half) for half in _HALVES)
    return Dataset(
        train=train,
        test=test,
        source=f"{folder} ({len(train)} training and {len(test)} test images)",
        group="writer",
        train_groups=np.asarray(arrays["train_writers"]),
        test_groups=np.asarray(arrays["test_writers"]),
    )


def _examples(arrays: Arrays, half: str) -> Examples:
    return Examples(
        inputs=torch.from_numpy(np.asarray(arrays[f"{half}_images"])),
        targets=torch.from_numpy(arrays[f"{half}_labels"].astype(np.int64)),
    )


def _decode(folder: Path, allocate: Allocate) -> None:
    halves = {half: _writers(folder / half) for half in _HALVES}
    names = sorted({writer.name for writers in halves.values() for writer in writers})
    numbers = {name: number for number, name in enumerate(names)}
    for half, writers in halves.items():
        count = sum(len(writer.labels) for writer in writers)
        images = allocate(f"{half}_images", (count, 1, SIDE, SIDE))
        labels = allocate(f"{half}_labels", (count,))
        owners = allocate(f"{half}_writers", (count,), "int64")
        start = 0
        for writer in writers:
            stop = start + len(writer.labels)
            images[start:stop] = writer.images.reshape(-1, 1, SIDE, SIDE)
            labels[start:stop] = writer.labels
            owners[start:stop] = numbers[writer.name]
            start = stop


def _writers(folder: Path) -> list[_Writer]:
    files = sorted(folder.glob("all_data_*.json"))
    if not files:
        raise ConfigError(
            f"{folder}: expected LEAF's all_data_*.json files, found none; "
            "run LEAF's preprocess.sh to its end"
        )
    return [writer for path in files for writer in _read(path)]


def _read(path: Path) -> Iterator[_Writer]:
    """One writer after the other: a file may be far larger than its images."""
    with reading(path), path.open(encoding="utf-8") as file:
        for name, values in _entries(_Text(file, path)):
            yield _Writer(name, *_arrays(path, name, values))


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
