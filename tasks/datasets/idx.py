"""IDX files (LeCun et al., 1998), plain or gzipped: how MNIST and its kin are published.

Two zero bytes, a byte for the type, a byte for the number of dimensions, each size as a big-endian
``uint32``, then the values in C order.
"""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedfreeze.errors import ConfigError, StateError
from tasks.dataset import Examples
from tasks.datasets.reading import reading

# More than any set of this kind holds; a header that claims more is not read further.
_MOST_ITEMS = 1_000_000

# The format's code of a type, and what messages call it.
_TYPES = {np.dtype("u1"): (8, "bytes"), np.dtype(">i4"): (12, "32-bit integers")}


def read_idx(
    folder: Path, name: str, item: tuple[int, ...], *, dtype: str = "u1", hint: str
) -> NDArray[Any]:
    """One IDX file as ``dtype[n, *item]``.

    Args:
        folder: holds the file as ``name`` or ``name.gz``.
        name: of the plain file.
        item: expected shape of one item.
        dtype: "u1" or ">i4", as numpy writes it.
        hint: what to do if the file is not there.

    Raises:
        ConfigError: there is no such file.
        StateError: it is torn or holds something else.
    """
    plain, zipped = folder / name, folder / f"{name}.gz"
    if not plain.is_file() and not zipped.is_file():
        raise ConfigError(
            f"data-dir: expected {plain} or {zipped.name} beside it, found neither; {hint}"
        )
    path = plain if plain.is_file() else zipped
    code, kind = _TYPES[np.dtype(dtype)]
    dimensions = 1 + len(item)
    with reading(path), path.open("rb") if path == plain else gzip.open(path, "rb") as file:
        header = file.read(4 + 4 * dimensions)
        if header[:4] != bytes((0, 0, code, dimensions)) or len(header) != 4 + 4 * dimensions:
            raise StateError(f"{path}: not an IDX file of {kind} in {dimensions} dimensions")
        count, *shape = struct.unpack(f">{dimensions}I", header[4:])
        if tuple(shape) != item or count > _MOST_ITEMS:
            raise StateError(
                f"{path}: expected at most {_MOST_ITEMS} items of shape {item}, "
                f"got {count} of shape {tuple(shape)}"
            )
        expected = count * math.prod(item) * np.dtype(dtype).itemsize
        # One byte more than expected shows an excess without unpacking it.
        raw = file.read(expected + 1)
    if len(raw) != expected:
        came = f"{len(raw)} bytes" if len(raw) < expected else "more"
        raise StateError(
            f"{path}: expected {expected} bytes after the header, got {came}; fetch the file again"
        )
    return np.frombuffer(raw, dtype).reshape(count, *item)


def read_digits(folder: Path, part: str, side: int, classes: int, hint: str) -> Examples:
    """Images and labels of one half, named as MNIST's are: ``uint8[n, 1, side, side]``.

    Args:
        folder: holds both files.
        part: "train" or "t10k".
        side: of the square images.
        classes: labels must be below this.
        hint: what to do if a file is not there.

    Raises:
        ConfigError: a file is not there.
        StateError: a file is torn, or the two do not belong together.
    """
    images = read_idx(folder, f"{part}-images-idx3-ubyte", (side, side), hint=hint)
    labels = read_idx(folder, f"{part}-labels-idx1-ubyte", (), hint=hint)
    if len(images) != len(labels):
        raise StateError(
            f"{folder}: {part} has {len(images)} images and {len(labels)} labels; "
            f"fetch the files again"
        )
    if labels.max(initial=0) >= classes:
        raise StateError(
            f"{folder}: {part} has label {labels.max()}, expected 0 to {classes - 1}; "
            f"is this another data set?"
        )
    return as_examples(images[:, None], labels)


def as_examples(images: NDArray[np.uint8], labels: NDArray[Any]) -> Examples:
    """Images ``uint8[n, c, h, w]`` and numbers of classes ``[n]`` as tensors of their own."""
    return Examples(
        inputs=torch.from_numpy(np.array(images)),
        targets=torch.from_numpy(labels.astype(np.int64)),
    )
