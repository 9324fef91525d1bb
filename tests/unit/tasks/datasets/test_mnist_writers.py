"""MNIST's images joined with QMNIST's list of writers."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from fedfreeze.errors import ConfigError, StateError
from tasks.catalogue.mnist_writers import task
from tasks.datasets.mnist_writers import mnist_writers
from tasks.sources import Place

REAL = os.environ.get("FEDFREEZE_TEST_DATA")

# Columns: digit, NIST series, writer, then five that nobody reads here.
TRAIN = np.array(
    [
        [5, 4, 2154, 59, 35, 229421, 0, 0],
        [0, 0, 12, 0, 30, 0, 0, 0],
        [4, 4, 2154, 65, 34, 238481, 0, 0],
    ],
    np.int32,
)
# The list of the test half is longer than MNIST's test half.
TEST = np.array(
    [
        [7, 4, 2578, 69, 37, 279260, 0, 0],
        [2, 0, 326, 55, 32, 253328, 0, 0],
        [1, 4, 9999, 80, 31, 273542, 0, 0],
    ],
    np.int32,
)


def idx(array: np.ndarray) -> bytes:
    code = {"uint8": 8, "int32": 12}[array.dtype.name]
    header = bytes((0, 0, code, array.ndim))
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return header + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write(folder: Path, images: str, writers: str) -> None:
    for part, name, rows in (("train", "train", TRAIN), ("t10k", "test", TEST)):
        count = 3 if part == "train" else 2
        pixels = np.arange(count * 784, dtype=np.uint32).astype(np.uint8).reshape(count, 28, 28)
        (folder / images).mkdir(parents=True, exist_ok=True)
        (folder / writers).mkdir(parents=True, exist_ok=True)
        (folder / images / f"{part}-images-idx3-ubyte").write_bytes(idx(pixels))
        digits = rows[:count, 0].astype(np.uint8)
        (folder / images / f"{part}-labels-idx1-ubyte").write_bytes(idx(digits))
        (folder / writers / f"qmnist-{name}-labels-idx2-int.gz").write_bytes(
            gzip.compress(idx(rows))
        )


@pytest.mark.parametrize(("images", "writers"), [("MNIST/raw", "QMNIST/raw"), ("mnist", "qmnist")])
def test_each_image_has_its_writer(tmp_path, images, writers):
    write(tmp_path, images, writers)
    data = mnist_writers(Place(tmp_path, demanded=True))
    assert data.group == "writer"
    # In the order of 12, 326, 2154, 2578.
    assert data.train_groups.tolist() == [2, 0, 2]
    assert data.test_groups.tolist() == [3, 1]
    assert data.train.targets.tolist() == [5, 0, 4]
    assert data.test.targets.tolist() == [7, 2]
    assert data.train.inputs.shape == (3, 1, 28, 28)
    assert data.train.inputs[0, 0, 0, :3].tolist() == [0, 1, 2]
    assert data.source == (
        f"{tmp_path / images} with writers of {tmp_path / writers} (3 training and 2 test images)"
    )


def test_a_list_of_other_digits_is_refused(tmp_path):
    write(tmp_path, "mnist", "qmnist")
    rows = TRAIN.copy()
    rows[1, 0] = 9
    file = tmp_path / "qmnist" / "qmnist-train-labels-idx2-int"
    file.write_bytes(idx(rows))
    with pytest.raises(StateError) as caught:
        mnist_writers(Place(tmp_path, demanded=True))
    assert str(caught.value) == (
        f"{file}: expected the digits of MNIST's train images in column 0, in their order, got "
        "others; are both files of the same set?"
    )


def test_without_data_it_says_where_to_put_it_and_what_fetches_it():
    with pytest.raises(ConfigError) as caught:
        mnist_writers(Place())
    assert str(caught.value) == (
        "MNIST does not ship with the project and was found nowhere; put it below a folder as "
        "MNIST/raw or mnist and name that folder with data-dir or FEDFREEZE_DATA_DIR; "
        "fedfreeze data mnist-writers --download --data-dir DIR fetches it"
    )


def test_without_the_writers_it_says_that_they_are_missing(tmp_path):
    write(tmp_path, "mnist", "elsewhere")
    with pytest.raises(ConfigError) as caught:
        mnist_writers(Place(tmp_path))
    assert str(caught.value).startswith(
        "QMNIST's list of writers does not ship with the project and was found nowhere; put it "
        "below a folder as QMNIST/raw or qmnist "
    )


@pytest.mark.skipif(REAL is None, reason="needs the published files: FEDFREEZE_TEST_DATA")
def test_the_published_files_hold_539_and_297_different_people():
    data = task.dataset(REAL)
    assert data.train.inputs.shape == (60_000, 1, 28, 28)
    assert data.test.inputs.shape == (10_000, 1, 28, 28)
    train, test = np.unique(data.train_groups), np.unique(data.test_groups)
    assert (len(train), len(test)) == (539, 297)
    assert sorted([*train, *test]) == list(range(539 + 297))  # nobody is in both
    sizes = np.bincount(data.train_groups)[train]
    assert (sizes.min(), sizes.max()) == (19, 131)
    # As published on MNIST's page.
    assert torch.bincount(data.test.targets).tolist() == [
        *(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
    ]
