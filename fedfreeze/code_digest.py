"""A digest of the code that trains and merges.

Flower ships an app's folder to the nodes, but generic package names let a node import another
app's ``client_app`` without a word. The server therefore compares this digest in every reply.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

ROOMS = (
    "fedfreeze",
    "compression",
    "device_profiles",
    "tasks",
    "strategies",
    "client_app",
    "server_app",
)


@cache
def code_digest(root: Path | None = None) -> str:
    """16 hex digits over the names and bytes of every ``.py`` file in the rooms under ``root``.

    ``root`` defaults to the folder that this very module was imported from.
    """
    base = Path(__file__).resolve().parent.parent if root is None else root
    digest = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((base / room).rglob("*.py")):
            content = path.read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"{path.relative_to(base).as_posix()}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()[:16]
