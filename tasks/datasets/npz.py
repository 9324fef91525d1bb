"""Reading numpy's ``.npz`` archives that may be torn, foreign or made to fill the memory."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import StateError
from tasks.datasets.reading import reading

# The .npy header before the values.
_HEADER_BYTES = 4096


@dataclass(frozen=True)
class Column:
    """One array of an archive: ``dtype[rows, *item]``."""

    dtype: str
    item: tuple[int, ...] = ()

    @property
    def row_bytes(self) -> int:
        """Of one row."""
        return np.dtype(self.dtype).itemsize * math.prod(self.item)


def read_npz(path: Path, columns: Mapping[str, Column], most_rows: int) -> dict[str, NDArray[Any]]:
    """The named arrays, all of the same number of rows; the archive may hold others.

    Args:
        path: of the archive.
        columns: name -> what it should be.
        most_rows: an array that claims more is not read.

    Raises:
        StateError: the file is torn, or its arrays are not these.
    """
    with reading(path), zipfile.ZipFile(path) as archive:
        for name, column in columns.items():
            size = archive.getinfo(f"{name}.npy").file_size
            if size > most_rows * column.row_bytes + _HEADER_BYTES:
                raise StateError(
                    f"{path}: expected at most {most_rows} rows of {column.row_bytes} bytes in "
                    f'"{name}", got {size} bytes; is this another data set?'
                )
        arrays = {name: _array(archive, f"{name}.npy") for name in columns}
    rows = len(next(iter(arrays.values()))) if next(iter(arrays.values())).ndim else 0
    for name, column in columns.items():
        array, shape = arrays[name], (rows, *column.item)
        if array.dtype != np.dtype(column.dtype) or array.shape != shape:
            raise StateError(
                f'{path}: expected "{name}" as {column.dtype}{list(shape)}, got '
                f"{array.dtype.name}{list(array.shape)}; is this another data set?"
            )
    return arrays


def _array(archive: zipfile.ZipFile, member: str) -> NDArray[Any]:
    # Not through `np.load`: it answers whatever is no array with the advice to unpickle it.
    with archive.open(member) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array
