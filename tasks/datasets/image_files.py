"""Small JPEG and PNG files in a folder, a zip or a tar archive, decoded to arrays."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from fedfreeze.errors import StateError
from tasks.datasets.reading import reading

# A small image is some kilobytes; a list of names some hundred.
_MOST_BYTES = 4 << 20
# More than any set of small images holds.
_MOST_FILES = 1_000_000
# Of a tar archive, which is read into memory; CIFAR-10 as images has 150 MB.
_MOST_TAR_BYTES = 1 << 30


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
    with reading(origin):
        read = _in_zip if zipfile.is_zipfile(origin) else _in_tar
        try:
            return read(origin, wanted)
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
        where = f"{files.origin}: {name}"
        with reading(where), _opened(where, files.read(name)) as image:
            # The header alone was read so far: a huge image is refused before it is decoded.
            if image.size != (width, height):
                raise StateError(
                    f"{where}: expected an image of {width}x{height} pixels, "
                    f"got {image.size[0]}x{image.size[1]}"
                )
            target[:] = np.asarray(image.convert("RGB")).transpose(2, 0, 1)


def _opened(where: str, content: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(content), formats=("JPEG", "PNG"))
    except UnidentifiedImageError as error:  # its text shows an address in memory
        raise StateError(f"{where}: expected a JPEG or PNG image; fetch the file again") from error


def _in_folder(folder: Path, wanted: re.Pattern[str]) -> Files:
    def read(name: str) -> bytes:
        path = folder / name
        with reading(path):
            _accept(folder, name, path.stat().st_size)
            return path.read_bytes()

    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return Files(folder, _matching(folder, names, wanted), read)


def _in_zip(path: Path, wanted: re.Pattern[str]) -> Files:
    archive = zipfile.ZipFile(path)  # stays open for `read`; closed with the last reference to it

    def read(name: str) -> bytes:
        with reading(f"{path}: {name}"):
            return archive.read(name)

    infos = [info for info in archive.infolist() if wanted.fullmatch(info.filename)]
    for info in infos:
        _accept(path, info.filename, info.file_size)
    return Files(path, _matching(path, [info.filename for info in infos], wanted), read)


def _in_tar(path: Path, wanted: re.Pattern[str]) -> Files:
    contents: dict[str, bytes] = {}
    total_bytes = 0
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            _accept(path, member.name, member.size)
            name = member.name.removeprefix("./")
            if not member.isfile() or not wanted.fullmatch(name):
                continue
            total_bytes += member.size
            if total_bytes > _MOST_TAR_BYTES:
                raise StateError(
                    f"{path}: expected at most {_MOST_TAR_BYTES} bytes of images, got more; "
                    "unpack it and name the folder"
                )
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
