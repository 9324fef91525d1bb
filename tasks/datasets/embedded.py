"""Arrays that ship with the project, as text: Flower's bundle carries no binary files."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import math
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import ConfigError, StateError

# Little-endian, so that the same text means the same numbers on every machine.
_TYPES: dict[str, np.dtype[Any]] = {"uint8": np.dtype("u1"), "int16": np.dtype("<i2")}


def embedded(file: str, instead: str) -> tuple[str, dict[str, NDArray[Any]]]:
    """The name and the arrays of a file below ``tasks/data``.

    Args:
        file: its name.
        instead: what a data folder would have to hold in its place.

    Raises:
        ConfigError: this bundle does not carry it.
        StateError: an array is torn.
    """
    try:
        text = (resources.files("tasks") / "data" / file).read_text("ascii")
    except FileNotFoundError as error:
        raise ConfigError(
            f"this bundle carries no tasks/data/{file}: give data-dir, a folder that holds "
            f"{instead}"
        ) from error
    document = json.loads(text)
    arrays = {name: unpack(name, packed) for name, packed in document["arrays"].items()}
    return document["name"], arrays


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """What :func:`unpack` reads, as JSON values: xz, then base85, of the values in C order.

    >>> unpack("steps", pack(np.array([[-2, 300]], np.int16))).tolist()
    [[-2, 300]]
    """
    raw = np.ascontiguousarray(array, _TYPES[array.dtype.name]).tobytes()
    packed = lzma.compress(raw, preset=9 | lzma.PRESET_EXTREME)
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(raw).hexdigest(),
        "xz_base85": base64.b85encode(packed).decode("ascii"),
    }


def unpack(name: str, packed: dict[str, Any]) -> NDArray[Any]:
    """One array of an embedded file; ``uint8`` unless it names its ``dtype``.

    Raises:
        StateError: it does not hold exactly the bytes of its shape and checksum.
    """
    dtype = _TYPES[packed.get("dtype", "uint8")]
    expected = math.prod(packed["shape"]) * dtype.itemsize
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
    return np.frombuffer(raw, dtype).reshape(packed["shape"])
