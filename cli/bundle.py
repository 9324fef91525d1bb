"""The app as it is submitted: the rooms that run on server and clients, and a project file.

Staged from wherever this package stands, so it works from a checkout and from an installed wheel.
"""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import tomli_w

import cli
from fedfreeze.code_digest import ROOMS
from fedfreeze.errors import RunError
from server_app.run_config import DEFAULTS

# What Flower packs; it drops everything else without a word.
SUFFIXES = (".py", ".toml", ".md", ".yaml", ".yml", ".json", ".jsonl")

COMPONENTS = {"serverapp": "server_app.app:app", "clientapp": "client_app.app:app"}


def stage(target: Path, *, root: Path | None = None) -> Path:
    """Copy the app below ``target``.

    Args:
        target: an existing empty folder.
        root: the folder that holds the rooms (default: where this package stands).

    Raises:
        RunError: a room is missing.
    """
    home = Path(cli.__file__).parent.parent if root is None else root
    for room in ROOMS:
        source = home / room
        if not (source / "__init__.py").is_file():
            raise RunError(
                f"expected the package {room} in {home}, found none; install fedfreeze again"
            )
        shutil.copytree(source, target / room, ignore=_not_shipped)
    (target / "pyproject.toml").write_text(tomli_w.dumps(project()), encoding="utf-8")
    return target


def project() -> dict[str, Any]:
    """The project file of the staged app, as TOML tables."""
    return {
        "project": {
            "name": "fedfreeze",
            "version": version(),
            "description": "Layer freezing for federated learning on small boards.",
            "license": "Apache-2.0",
            "dependencies": ["flwr>=1.42,<1.43"],
        },
        "tool": {
            "flwr": {
                "app": {
                    "publisher": "fedfreeze",
                    "components": COMPONENTS,
                    "config": DEFAULTS,
                }
            }
        },
    }


def version() -> str:
    """The installed version; "0.0.0" in a checkout that was never installed."""
    try:
        return metadata.version("fedfreeze")
    except metadata.PackageNotFoundError:
        return "0.0.0"


def _not_shipped(folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name == "__pycache__" or not ((Path(folder) / name).is_dir() or name.endswith(SUFFIXES))
    }
