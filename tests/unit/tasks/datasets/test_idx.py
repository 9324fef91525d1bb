"""IDX files: written here by the format's description, read by the project."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.idx import read_idx

IMAGES = np.arange(3 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(3, 28, 28)
ROWS = np.array([[1, -2], [70_000, 3]], np.int32)


def idx(array: np.ndarray) -> bytes:
    code = {"uint8": 8, "int32": 12}[array.dtype.name]
    header = bytes((0, 0, code, array.ndim))
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return header + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "images"
    path.write_bytes(idx(IMAGES))
    return path


def read(path: Path, item=(28, 28), **how):
    return read_idx(path.parent, path.name, item, hint="look again", **how)


def refused(path: Path, *, error=StateError, **how) -> str:
    with pytest.raises(error) as caught:
        read(path, **how)
    return str(caught.value)


def test_bytes_are_read(file):
    assert np.array_equal(read(file), IMAGES)


def test_big_endian_integers_are_read(file):
    file.write_bytes(idx(ROWS))
    assert read(file, item=(2,), dtype=">i4").tolist() == ROWS.tolist()


def test_gzipped_files_are_read_too(file):
    file.with_name("images.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    assert np.array_equal(read(file), IMAGES)


def test_a_file_that_is_not_there_is_named_with_what_to_do(file):
    file.unlink()
    assert refused(file, error=ConfigError) == (
        f"data-dir: expected {file} or images.gz beside it, found neither; look again"
    )


@pytest.mark.parametrize("content", [b"<!DOCTYPE html>.....", b"", idx(ROWS)])
def test_a_file_of_another_kind_is_refused(file, content):
    file.write_bytes(content)
    assert refused(file) == f"{file}: not an IDX file of bytes in 3 dimensions"


def test_integers_are_not_taken_from_a_file_of_bytes(file):
    assert refused(file, dtype=">i4") == (
        f"{file}: not an IDX file of 32-bit integers in 3 dimensions"
    )


def test_images_of_another_size_are_refused(file):
    file.write_bytes(idx(np.zeros((2, 32, 32), np.uint8)))
    assert refused(file) == (
        f"{file}: expected at most 1000000 items of shape (28, 28), got 2 of shape (32, 32)"
    )


def test_a_header_that_claims_too_much_is_refused_before_reading_on(file):
    file.write_bytes(bytes((0, 0, 8, 1)) + (2**32 - 1).to_bytes(4, "big"))
    assert refused(file, item=()) == (
        f"{file}: expected at most 1000000 items of shape (), got 4294967295 of shape ()"
    )


@pytest.mark.parametrize(("change", "came"), [(slice(0, -1), "2351 bytes"), (None, "more")])
def test_a_torn_file_is_refused(file, change, came):
    whole = file.read_bytes()
    file.write_bytes(whole + b"x" if change is None else whole[change])
    assert refused(file) == (
        f"{file}: expected 2352 bytes after the header, got {came}; fetch the file again"
    )


def test_a_torn_gzip_file_is_refused(file):
    zipped = file.with_name("images.gz")
    zipped.write_bytes(gzip.compress(file.read_bytes())[:-20])
    file.unlink()
    assert refused(file) == (
        f"{zipped}: cannot be read: Compressed file ended before the end-of-stream marker was "
        "reached; fetch the file again"
    )
