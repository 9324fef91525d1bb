"""Small JPEG and PNG files in a folder, a zip or a tar archive, decoded to arrays."""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fedfreeze.errors import StateError

# A small image is some kilobytes; a list of names some hundred.
_MOST_BYTES = 4 << 20
# More than any set of small images holds.
_MOST_FILES = 1_000_000


@dataclass(frozen=True)
class Files:
    """Files of one data set, wherever they lie.

    Attributes:
        origin: the folder or archive, for messages.
        names: sorted paths inside it.
        read: the content of one of them.
    """

    origin: Path
    names: tuple[str, ...]
    read: Callable[[str], bytes]


def files_in(origin: Path, wanted: re.Pattern[str]) -> Files:
    """The files of a folder, a zip or a tar archive whose whole path matches ``wanted``.

    An archive is never unpacked to disk, so its paths can do no harm. A tar archive is read into
    memory, as it has no index.

    Raises:
        StateError: it is no such archive, it is torn, or a file in it is too large.
    """
    if origin.is_dir():
        return _in_folder(origin, wanted)
    try:
        if zipfile.is_zipfile(origin):
            return _in_zip(origin, wanted)
        return _in_tar(origin, wanted)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise StateError(f"{origin}: cannot be read: {error}; fetch the file again") from error
    except (tarfile.TarError, zipfile.BadZipFile) as error:
        raise StateError(
            f"{origin}: expected a zip or tar archive: {error}; fetch the file again"
        ) from error


def decode(files: Files, names: Sequence[str], into: NDArray[np.uint8]) -> None:
    """Decode images of one size, in this order, as red, green and blue planes.

    Args:
        files: where they lie.
        names: of the images.
        into: ``uint8[len(names), 3, side, side]``, filled in place.

    Raises:
        StateError: a file is no image, or one of another size.
    """
    height, width = into.shape[-2:]
    for target, name in zip(into, names, strict=True):
        try:
            with Image.open(io.BytesIO(files.read(name)), formats=("JPEG", "PNG")) as image:
                # The header alone was read so far: a huge image is refused before it is decoded.
                if image.size != (width, height):
                    raise StateError(
                        f"{files.origin}: {name}: expected an image of {width}x{height} pixels, "
                        f"got {image.size[0]}x{image.size[1]}"
                    )
                target[:] = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise StateError(f"{files.origin}: {name}: cannot be decoded: {error}") from error


def _in_folder(folder: Path, wanted: re.Pattern[str]) -> Files:
    def read(name: str) -> bytes:
        path = folder / name
        _accept(folder, name, path.stat().st_size)
        return path.read_bytes()

    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return Files(folder, _matching(folder, names, wanted), read)


def _in_zip(path: Path, wanted: re.Pattern[str]) -> Files:
    archive = zipfile.ZipFile(path)  # stays open for `read`; closed with the last reference to it

    def read(name: str) -> bytes:
        try:
            return archive.read(name)
        except (zipfile.BadZipFile, zlib.error) as error:
            raise StateError(f"{path}: {name}: {error}; fetch the file again") from error

    infos = [info for info in archive.infolist() if wanted.fullmatch(info.filename)]
    for info in infos:
        _accept(path, info.filename, info.file_size)
    return Files(path, _matching(path, [info.filename for info in infos], wanted), read)


def _in_tar(path: Path, wanted: re.Pattern[str]) -> Files:
    contents: dict[str, bytes] = {}
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            _accept(path, member.name, member.size)
            name = member.name.removeprefix("./")
            if not member.isfile() or not wanted.fullmatch(name):
                continue
            file = archive.extractfile(member)
            contents[name] = file.read() if file else b""
            _accept_count(path, len(contents))
    return Files(path, tuple(sorted(contents)), contents.__getitem__)


def _matching(origin: Path, names: Iterable[str], wanted: re.Pattern[str]) -> tuple[str, ...]:
    found = tuple(sorted(name for name in names if wanted.fullmatch(name)))
    _accept_count(origin, len(found))
    return found


def _accept(origin: Path, name: str, size: int) -> None:
    if size > _MOST_BYTES:
        raise StateError(
            f"{origin}: {name}: expected a small file, at most {_MOST_BYTES} bytes, got {size}"
        )


def _accept_count(origin: Path, count: int) -> None:
    if count > _MOST_FILES:
        raise StateError(f"{origin}: expected at most {_MOST_FILES} images, got more")
