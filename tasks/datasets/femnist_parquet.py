"""FEMNIST as ``flwrlabs/femnist`` of Hugging Face: one table, a PNG image a row.

It has no test half. LEAF's ``-t sample`` draws a tenth of each writer's images; here it is every
tenth of them in the file's order, so that everybody has the same.
"""

from __future__ import annotations

import io
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fedfreeze.errors import StateError
from tasks.datasets.femnist_writer import LABELS, SIDE, Writer
from tasks.datasets.parquet import class_names, parts_of, rows
from tasks.datasets.reading import reading

_COLUMNS = ("image", "writer_id", "character")
_TENTH = 10


def parquet_halves(folder: Path) -> dict[str, list[Writer]]:
    """The writers of the training and of the test half.

    Raises:
        ConfigError: pyarrow is not installed.
        StateError: a file is torn or not what it should be.
    """
    images: dict[str, list[NDArray[np.uint8]]] = defaultdict(list)
    labels: dict[str, list[int]] = defaultdict(list)
    for path in parts_of(folder, "train"):
        names = class_names(path, "character")
        if names not in (None, LABELS):
            raise StateError(
                f"{path}: expected the classes {''.join(LABELS)} in this order, "
                f"got {' '.join(names or ())[:100]}; is this another data set?"
            )
        for number, (image, writer, character) in enumerate(rows(path, _COLUMNS), 1):
            where = f"{path}: row {number}"
            if not isinstance(character, int) or not 0 <= character < len(LABELS):
                raise StateError(
                    f"{where}: expected a class from 0 to {len(LABELS) - 1}, got {character!r}"
                )
            images[str(writer)].append(_pixels(where, image))
            labels[str(writer)].append(character)
    halves: dict[str, list[Writer]] = {"train": [], "test": []}
    for name in sorted(images):
        pixels, classes = np.stack(images[name]), np.array(labels[name], np.int64)
        test = np.arange(len(classes)) % _TENTH == _TENTH - 1
        halves["train"].append(Writer(name, pixels[~test], classes[~test]))
        if test.any():
            halves["test"].append(Writer(name, pixels[test], classes[test]))
    return halves


def _pixels(where: str, image: Any) -> NDArray[np.uint8]:
    content = image.get("bytes") if isinstance(image, dict) else None
    if not isinstance(content, bytes):
        raise StateError(f"{where}: expected an image as bytes, got {type(content).__name__}")
    with reading(where), Image.open(io.BytesIO(content), formats=("PNG",)) as opened:
        # The header alone was read so far: a huge image is refused before it is decoded.
        if opened.size != (SIDE, SIDE):
            raise StateError(
                f"{where}: expected an image of {SIDE}x{SIDE} pixels, "
                f"got {opened.size[0]}x{opened.size[1]}"
            )
        return np.asarray(opened.convert("L")).reshape(-1)
