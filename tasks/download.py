"""Fetching published files, only when a command was asked to.

A file stands under its name only when it is whole and has its checksum; what was cut off is
continued the next time.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from fedfreeze.errors import ConfigError, StateError
from tasks.registry import TASKS, module_of

_CHUNK = 1 << 20
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Download:
    """One published file.

    Attributes:
        url: where it is published; http or https, as the checksum vouches for it.
        file: its path below a data folder.
        sha256, md5: its checksum in hexadecimal; the publisher's own, so often only the weaker.
        bytes: its exact size.
    """

    url: str
    file: str
    sha256: str = ""
    md5: str = ""
    bytes: int = 0

    def __post_init__(self) -> None:
        path = Path(self.file)
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise ConfigError(f"download: expected a path below a data folder, got {self.file!r}")
        if urlsplit(self.url).scheme not in {"http", "https"}:
            raise ConfigError(f"download: expected an http or https address, got {self.url!r}")
        if not (self.sha256 or self.md5) or self.bytes <= 0:
            raise ConfigError(f"download: {self.url} needs a checksum and its size in bytes")


class Response(Protocol):
    """What an opener returns: a stream, and whether it begins where it was asked to."""

    status: int

    def read(self, amount: int, /) -> bytes:
        """Up to ``amount`` more bytes; none at the end."""
        ...

    def close(self) -> None:
        """Let the connection go."""
        ...


Opener = Callable[[Request], Response]
Progress = Callable[[Download, int], None]


def _open(request: Request) -> Response:
    response: Response = urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310  # scheme was checked
    return response


def _silent(download: Download, done_bytes: int) -> None:
    del download, done_bytes


def downloads_of(task: str) -> tuple[Download, ...]:
    """What the data of a task of the project consists of: its module's ``downloads``.

    Nothing if it cannot be fetched, and for a task of the user's own.

    Args:
        task: its name.

    Raises:
        ConfigError: there is no such task.

    >>> [download.file for download in downloads_of("cifar10")]
    ['cifar-10-binary.tar.gz']
    """
    try:
        name = module_of(task)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if task not in TASKS:
        return ()
    return tuple(getattr(importlib.import_module(name), "downloads", ()))


def fetch(
    downloads: Sequence[Download],
    folder: Path,
    opener: Opener = _open,
    progress: Progress = _silent,
) -> list[Path]:
    """Put the files below ``folder``; those that are there already and whole are left alone.

    Args:
        downloads: what to fetch.
        folder: the data folder; made if it is not there.
        opener: sends a request and returns the response.
        progress: told the file and how many of its bytes have arrived.

    Returns:
        The path of each file.

    Raises:
        ConfigError: the folder cannot be written, or an address cannot be reached.
        StateError: what came is not the published file.
    """
    return [_fetch(download, folder / download.file, opener, progress) for download in downloads]


def _fetch(download: Download, path: Path, opener: Opener, progress: Progress) -> Path:
    try:
        if path.is_file() and _is_whole(download, path):
            progress(download, download.bytes)
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        _receive(download, part, opener, progress)
        _check(download, part)
        part.replace(path)
    except (URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        if isinstance(error, HTTPError):
            error.close()  # it holds the connection
        raise ConfigError(_unreachable(download, path, error)) from error
    except OSError as error:
        raise ConfigError(
            f"{error.filename or path}: expected to write there, got: {error.strerror or error}; "
            "make room, or name another folder"
        ) from error
    return path


def _receive(download: Download, part: Path, opener: Opener, progress: Progress) -> None:
    """Continue ``part`` where it ends, or begin it anew if the server cannot."""
    have = part.stat().st_size if part.exists() else 0
    if have > download.bytes:
        have = 0
    if have == download.bytes:
        return
    headers = {"User-Agent": "fedfreeze", **({"Range": f"bytes={have}-"} if have else {})}
    response = opener(Request(download.url, headers=headers))  # noqa: S310  # scheme was checked
    try:
        continues = have > 0 and response.status == http.HTTPStatus.PARTIAL_CONTENT
        with part.open("ab" if continues else "wb") as file:
            _copy(download, response, file, have if continues else 0, progress)
    finally:
        response.close()


def _copy(
    download: Download, response: Response, file: IO[Any], done: int, progress: Progress
) -> None:
    while chunk := response.read(_CHUNK):
        done += len(chunk)
        if done > download.bytes:
            file.truncate(0)  # or the next call would go on with what is no part of it
            raise StateError(
                f"{download.url}: expected {download.bytes} bytes, got more; "
                "the publisher changed the file, or something answers in its place"
            )
        file.write(chunk)
        progress(download, done)


def _check(download: Download, part: Path) -> None:
    size = part.stat().st_size
    if size < download.bytes:
        raise ConfigError(
            f"{download.url}: expected {download.bytes} bytes, the connection ended after {size}; "
            "run the command again to go on from there"
        )
    if not _is_whole(download, part):
        part.unlink()
        raise StateError(
            f"{download.url}: what came has another checksum than the published file; run the "
            "command again; if it stays so, the file was changed on the way or at its publisher"
        )


def _is_whole(download: Download, path: Path) -> bool:
    if path.stat().st_size != download.bytes:
        return False
    name, expected = ("sha256", download.sha256) if download.sha256 else ("md5", download.md5)
    return file_digest(path, name) == expected


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        # Also md5: it guards against accidents, and publishers give no other.
        digest = hashlib.new(algorithm, usedforsecurity=False)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _unreachable(download: Download, path: Path, error: Exception) -> str:
    reason = (
        f"{error.code} {error.reason}"
        if isinstance(error, HTTPError)
        else (str(getattr(error, "reason", error)) or type(error).__name__)
    )
    return (
        f"{download.url}: cannot be fetched: {reason}; run the command again, or fetch it by other "
        f"means and put it at {path}"
    )
