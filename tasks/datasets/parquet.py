"""Hugging Face's parquet files: the halves of a set as ``HALF-00000-of-00001.parquet``.

``huggingface-cli download --repo-type dataset NAME --local-dir FOLDER`` fetches them; they then lie
in ``FOLDER`` or in ``FOLDER/data``.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.reading import reading

_NAME = re.compile(r"-\d{5}-of-(\d{5})\.parquet")
_ROWS_AT_ONCE = 4096


def parts_of(folder: Path, half: str) -> tuple[Path, ...]:
    """The files of a half in order; none if the folder has none.

    Raises:
        StateError: some of them are not there.
    """
    for place in (folder, folder / "data"):
        names = sorted(place.glob(f"{half}-*.parquet"))
        found = [(path, _NAME.fullmatch(path.name.removeprefix(half))) for path in names]
        parts = [(path, int(match.group(1))) for path, match in found if match]
        if not parts:
            continue
        if any(count != len(parts) for _, count in parts):
            raise StateError(
                f"{place}: expected {parts[0][1]} parts of {half}, got {len(parts)}; "
                "fetch the data set again"
            )
        return tuple(path for path, _ in parts)
    return ()


def needed_parts(folder: Path, half: str) -> tuple[Path, ...]:
    """As :func:`parts_of`, for the half that must be there once another is.

    Raises:
        StateError: there are none, or some are not there.
    """
    parts = parts_of(folder, half)
    if not parts:
        raise StateError(
            f"{folder}: expected {half}-00000-of-00001.parquet beside the training half, found "
            "none; fetch the data set again"
        )
    return parts


def rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """The values of these columns, row by row; a few thousand rows are in memory at once.

    Raises:
        ConfigError: pyarrow is not installed.
        StateError: the file is torn, or lacks a column.
    """
    with reading(path), _open(path) as file:
        _accept(path, file, columns)
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(columns)):
            yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def class_names(path: Path, column: str) -> tuple[str, ...] | None:
    """What the file says the classes of a column are called; None if it does not say.

    Raises:
        ConfigError: pyarrow is not installed.
        StateError: the file is torn.
    """
    with reading(path), _open(path) as file:
        said = (file.schema_arrow.metadata or {}).get(b"huggingface")
        if said is None:
            return None
        feature = json.loads(said).get("info", {}).get("features", {}).get(column, {})
        names = feature.get("names")
        return None if names is None else tuple(map(str, names))


def _accept(path: Path, file: Any, columns: tuple[str, ...]) -> None:
    found = file.schema_arrow.names
    if lacking := [name for name in columns if name not in found]:
        raise StateError(
            f"{path}: expected the columns {', '.join(columns)}, got {', '.join(found)}: "
            f"{', '.join(lacking)} is not there; is this another data set?"
        )


def _open(path: Path) -> Any:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigError(
            f"{path}: parquet files need the package pyarrow: {error}; pip install 'fedfreeze[hub]'"
        ) from error
    return parquet.ParquetFile(path)
