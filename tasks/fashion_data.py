"""Fashion-MNIST from a folder that the user names, or the subset that ships with the project."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import lzma
import math
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import ConfigError, StateError

Bytes8 = NDArray[np.uint8]

_EMBEDDED = "fashion_mini.json"
_SIDE = 28
_CLASSES = 10
# More than any set of this kind holds; a header that claims more is not read further.
_MOST_IMAGES = 1_000_000


@dataclass(frozen=True)
class FashionData:
    """Images ``uint8[n, 28, 28]`` with labels ``uint8[n]`` below 10, and where they are from."""

    train_images: Bytes8
    train_labels: Bytes8
    test_images: Bytes8
    test_labels: Bytes8
    source: str


@lru_cache(maxsize=2)
def fashion_data(data_dir: str | None) -> FashionData:
    """The data set in ``data_dir``, laid out as torchvision does, or the embedded subset if None.

    Raises:
        ConfigError: the folder or the embedded file lacks a part. A named folder is never replaced
            by the embedded data.
        StateError: a file is torn or not what it should be.
    """
    return _embedded() if data_dir is None else _from_folder(Path(data_dir))


def _embedded() -> FashionData:
    file = resources.files("tasks") / "data" / _EMBEDDED
    try:
        document = json.loads(file.read_text("ascii"))
    except FileNotFoundError as error:
        raise ConfigError(
            f"this bundle carries no tasks/data/{_EMBEDDED}: give data-dir, a folder that holds "
            f"FashionMNIST/raw"
        ) from error
    arrays = {name: unpack(name, packed) for name, packed in document["arrays"].items()}
    return FashionData(**arrays, source=document["name"])


def unpack(name: str, packed: dict[str, Any]) -> Bytes8:
    """One array of the embedded file: ``xz_base85`` of ``uint8`` values in C order.

    Raises:
        StateError: it does not hold exactly the bytes of its shape and checksum.
    """
    expected = math.prod(packed["shape"])
    decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
    try:
        # One byte more than expected shows an excess without unpacking it.
        raw = decompressor.decompress(base64.b85decode(packed["xz_base85"]), expected + 1)
    except (ValueError, lzma.LZMAError) as error:
        raise StateError(f"embedded data {name}: {error}; reinstall the project") from error
    if len(raw) != expected or hashlib.sha256(raw).hexdigest() != packed["sha256"]:
        raise StateError(
            f"embedded data {name}: expected {expected} bytes with the recorded checksum, "
            f"got {len(raw)} others; reinstall the project"
        )
    return np.frombuffer(raw, np.uint8).reshape(packed["shape"])


def _from_folder(data_dir: Path) -> FashionData:
    folder = data_dir / "FashionMNIST" / "raw"
    parts: list[Bytes8] = []
    for part in ("train", "t10k"):
        images = _idx(folder, f"{part}-images-idx3-ubyte", (_SIDE, _SIDE))
        labels = _idx(folder, f"{part}-labels-idx1-ubyte", ())
        if len(images) != len(labels):
            raise StateError(
                f"{folder}: {part} has {len(images)} images and {len(labels)} labels; "
                f"fetch the files again"
            )
        if labels.max(initial=0) >= _CLASSES:
            raise StateError(
                f"{folder}: {part} has label {labels.max()}, expected 0 to {_CLASSES - 1}; "
                f"is this another data set?"
            )
        parts += [images, labels]
    return FashionData(
        train_images=parts[0],
        train_labels=parts[1],
        test_images=parts[2],
        test_labels=parts[3],
        source=f"{folder} ({len(parts[0])} training and {len(parts[2])} test images)",
    )


def _idx(folder: Path, name: str, item: tuple[int, ...]) -> Bytes8:
    """An IDX file of unsigned bytes, plain or gzipped: ``uint8[n, *item]``."""
    plain, zipped = folder / name, folder / f"{name}.gz"
    if not plain.is_file() and not zipped.is_file():
        raise ConfigError(
            f"data-dir: expected {plain} or {zipped.name} beside it, found neither; "
            f"leave data-dir out to use the embedded subset"
        )
    path = plain if plain.is_file() else zipped
    with path.open("rb") if path == plain else gzip.open(path, "rb") as file:
        dimensions = 1 + len(item)
        try:
            header = file.read(4 + 4 * dimensions)
            # Magic: two zero bytes, 8 for unsigned bytes, the number of dimensions.
            if header[:4] != bytes((0, 0, 8, dimensions)) or len(header) != 4 + 4 * dimensions:
                raise StateError(f"{path}: not an IDX file of bytes in {dimensions} dimensions")
            count, *shape = struct.unpack(f">{dimensions}I", header[4:])
            if tuple(shape) != item or count > _MOST_IMAGES:
                raise StateError(
                    f"{path}: expected at most {_MOST_IMAGES} items of shape {item}, "
                    f"got {count} of shape {tuple(shape)}"
                )
            expected = count * math.prod(item)
            raw = file.read(expected + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise StateError(f"{path}: cannot be read: {error}") from error
    if len(raw) != expected:
        came = f"{len(raw)} bytes" if len(raw) < expected else "more"
        raise StateError(
            f"{path}: expected {expected} bytes after the header, got {came}; fetch the file again"
        )
    return np.frombuffer(raw, np.uint8).reshape(count, *item)
