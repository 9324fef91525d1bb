"""Availability traces in files: when a board is there, as CSV or JSON.

from_s,to_s          [[0, 3600],
0,3600                [7200, 10800]]
7200,10800
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from device_profiles.presence import Trace, windows

HEADER = ["from_s", "to_s"]


def read_trace(path: Path) -> Trace:
    """The windows of a ``.csv`` or ``.json`` file, in seconds since the run began.

    Raises:
        ValueError: it cannot be read, or is no trace; the message names the file.
    """
    try:
        text = path.read_text("utf-8-sig")
        return windows(_json(text) if path.suffix == ".json" else _csv(text))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read as a trace: {error.strerror}") from error
    except (ValueError, RecursionError, csv.Error) as error:
        raise ValueError(f"{path}: {error}") from error


def _json(text: str) -> list[Any]:
    rows = json.loads(text)
    if not isinstance(rows, list):
        found = text.strip()[:40]
        raise ValueError(f"expected an array of [from, to], got {found}")  # noqa: TRY004  # all the same
    return rows


def _csv(text: str) -> list[list[float]]:
    header, *rows = [row for row in csv.reader(text.splitlines()) if row] or [[]]
    if [cell.strip() for cell in header] != HEADER:
        raise ValueError(f"expected the header {','.join(HEADER)}, got {','.join(header)!r:.40}")
    return [[_seconds(cell) for cell in row] for row in rows]


def _seconds(cell: str) -> float:
    try:
        return float(cell)
    except ValueError as error:
        raise ValueError(f"expected seconds, got {cell!r:.40}") from error
