"""A JSON value in a file that a cache keeps: it appears whole, and what is damaged is absent."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

# Of the file; 2 holds some JSON and its SHA-256.
FORMAT = 2


def read_cached(path: Path) -> Any:
    """What :func:`write_cached` wrote there; None if that is not what the file holds."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT or document["sha256"] != _digest(document["content"]):
            return None
        return document["content"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def write_cached(path: Path, content: Any) -> bool:
    """Write a JSON value with its digest, at once and whole; whether that was possible."""
    document = {"format": FORMAT, "sha256": _digest(content), "content": content}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, json.dumps(document).encode())
    except OSError:
        return False
    return True


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
