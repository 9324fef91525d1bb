"""Archives of arrays, whole and otherwise."""

import pickle
import zipfile

import numpy as np
import pytest

from fedfreeze.errors import StateError
from tasks.datasets.npz import Column, read_npz

COLUMNS = {"x": Column("float32", (2,)), "y": Column("uint8")}
X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
Y = np.array([0, 1, 2], np.uint8)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "set.npz"


def refused(file, most_rows=10):
    with pytest.raises(StateError) as caught:
        read_npz(file, COLUMNS, most_rows)
    return str(caught.value)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_the_named_arrays_are_read(file, save):
    save(file, x=X, y=Y, more=np.array(["text"]))
    arrays = read_npz(file, COLUMNS, most_rows=3)
    assert list(arrays) == ["x", "y"]
    assert np.array_equal(arrays["x"], X)
    assert np.array_equal(arrays["y"], Y)


def test_an_array_that_claims_too_much_is_not_read(file):
    np.savez_compressed(file, x=np.zeros((2000, 2), np.float32), y=Y)
    assert refused(file) == (
        f'{file}: expected at most 10 rows of 8 bytes in "x", got 16128 bytes; '
        "is this another data set?"
    )


@pytest.mark.parametrize(
    ("changes", "came"),
    [
        ({"x": X.astype(np.float64)}, '"x" as float32[3, 2], got float64[3, 2]'),
        ({"x": X[:, :1]}, '"x" as float32[3, 2], got float32[3, 1]'),
        ({"y": Y[:2]}, '"y" as uint8[3], got uint8[2]'),
        ({"x": np.float32(1)}, '"x" as float32[0, 2], got float32[]'),
    ],
)
def test_arrays_of_another_kind_are_refused(file, changes, came):
    np.savez(file, **{"x": X, "y": Y, **changes})
    assert refused(file) == f"{file}: expected {came}; is this another data set?"


def test_a_missing_array_is_named(file):
    np.savez(file, x=X)
    assert refused(file) == (
        f"{file}: cannot be read: There is no item named 'y.npy' in the archive; "
        "fetch the file again"
    )


def test_pickled_objects_are_refused(file):
    np.savez(file, x=np.array([{"a": 1}], object), y=Y)
    assert refused(file) == (
        f"{file}: cannot be read: Object arrays cannot be loaded when allow_pickle=False; "
        "fetch the file again"
    )


def test_a_torn_archive_is_refused(file):
    np.savez(file, x=X, y=Y)
    file.write_bytes(file.read_bytes()[:-30])
    assert refused(file) == f"{file}: cannot be read: File is not a zip file; fetch the file again"


def test_a_header_that_claims_more_than_its_member_holds_is_refused(file):
    np.savez(file, y=Y)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (9, 2), }".ljust(117) + b"\n"
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00\x76\x00" + header + bytes(8))
    assert refused(file).startswith(f"{file}: cannot be read: ")


def test_a_header_that_claims_more_memory_than_there_is_is_refused(file):
    np.savez(file, y=Y)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (10**15, 2), }"
    header = header.replace(b"10**15", str(10**15).encode()).ljust(117) + b"\n"
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00\x76\x00" + header)
    assert refused(file).startswith(f"{file}: cannot be read: Unable to allocate ")


def test_a_header_that_is_no_header_is_refused(file):
    np.savez(file, y=Y)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': (".ljust(118))
    assert refused(file).startswith(f"{file}: cannot be read: ")


def test_a_member_that_is_no_array_is_refused_without_the_advice_to_unpickle_it(file):
    np.savez(file, y=Y)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("x.npy", pickle.dumps([1]))
    assert refused(file) == (
        f"{file}: cannot be read: the magic string is not correct; expected b'\\x93NUMPY', got "
        f"{pickle.dumps([1])[:6]!r}; fetch the file again"
    )


def test_a_folder_in_its_place_is_refused(file):
    file.mkdir()
    assert refused(file) == f"{file}: cannot be read: Is a directory; fetch the file again"
