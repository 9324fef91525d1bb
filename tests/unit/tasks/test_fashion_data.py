"""Fashion-MNIST from folders in torchvision's layout, and the embedded subset."""

import base64
import gzip
import hashlib
import json
import lzma
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from fedfreeze.errors import ConfigError, StateError
from tasks.fashion_cnn import task
from tasks.fashion_data import fashion_data, unpack

SHIPPED = resources.files("tasks") / "data"


def idx(array: np.ndarray) -> bytes:
    """The array as an IDX file, written by the format's description."""
    header = bytes((0, 0, 8, array.ndim))
    return header + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()


IMAGES = np.arange(3 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(3, 28, 28)
LABELS = np.array([0, 9, 4], np.uint8)


@pytest.fixture
def raw(tmp_path) -> Path:
    folder = tmp_path / "FashionMNIST" / "raw"
    folder.mkdir(parents=True)
    for part, images, labels in (("train", IMAGES, LABELS), ("t10k", IMAGES[:2], LABELS[:2])):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    return folder


def load(raw: Path):
    return fashion_data(str(raw.parents[1]))


def refused(raw: Path, error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        load(raw)
    return str(caught.value)


def test_a_folder_is_read_as_torchvision_lays_it_out(raw):
    data = load(raw)
    assert np.array_equal(data.train_images, IMAGES)
    assert np.array_equal(data.test_labels, LABELS[:2])
    assert data.source == f"{raw} (3 training and 2 test images)"


def test_gzipped_files_are_read_too(raw):
    for file in list(raw.iterdir()):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert np.array_equal(load(raw).train_images, IMAGES)


def test_a_named_folder_is_never_replaced_by_the_embedded_data(tmp_path):
    raw = tmp_path / "FashionMNIST" / "raw"
    assert refused(raw, ConfigError) == (
        f"data-dir: expected {raw}/train-images-idx3-ubyte or train-images-idx3-ubyte.gz beside "
        "it, found neither; leave data-dir out to use the embedded subset"
    )


def test_a_file_of_another_kind_is_refused(raw):
    file = raw / "train-images-idx3-ubyte"
    file.write_bytes(b"<!DOCTYPE html>.....")
    assert refused(raw, StateError) == f"{file}: not an IDX file of bytes in 3 dimensions"


def test_images_of_another_size_are_refused(raw):
    file = raw / "train-images-idx3-ubyte"
    file.write_bytes(idx(np.zeros((2, 32, 32), np.uint8)))
    assert refused(raw, StateError) == (
        f"{file}: expected at most 1000000 items of shape (28, 28), got 2 of shape (32, 32)"
    )


def test_a_header_that_claims_too_much_is_refused_before_reading_on(raw):
    file = raw / "train-labels-idx1-ubyte"
    file.write_bytes(bytes((0, 0, 8, 1)) + (2**32 - 1).to_bytes(4, "big"))
    assert refused(raw, StateError) == (
        f"{file}: expected at most 1000000 items of shape (), got 4294967295 of shape ()"
    )


@pytest.mark.parametrize(("change", "came"), [(slice(0, -1), "2351 bytes"), (None, "more")])
def test_a_torn_file_is_refused(raw, change, came):
    file = raw / "train-images-idx3-ubyte"
    whole = file.read_bytes()
    file.write_bytes(whole + b"x" if change is None else whole[change])
    assert refused(raw, StateError) == (
        f"{file}: expected 2352 bytes after the header, got {came}; fetch the file again"
    )


def test_a_torn_gzip_file_is_refused(raw):
    file = raw / "train-images-idx3-ubyte"
    zipped = file.with_name(f"{file.name}.gz")
    zipped.write_bytes(gzip.compress(file.read_bytes())[:-20])
    file.unlink()
    assert refused(raw, StateError) == (
        f"{zipped}: cannot be read: Compressed file ended before the end-of-stream marker was "
        "reached"
    )


def test_a_label_that_is_no_class_is_refused(raw):
    (raw / "train-labels-idx1-ubyte").write_bytes(idx(np.array([0, 10, 4], np.uint8)))
    assert refused(raw, StateError) == (
        f"{raw}: train has label 10, expected 0 to 9; is this another data set?"
    )


def test_images_without_labels_are_refused(raw):
    (raw / "train-labels-idx1-ubyte").write_bytes(idx(LABELS[:2]))
    assert refused(raw, StateError) == (
        f"{raw}: train has 3 images and 2 labels; fetch the files again"
    )


def test_the_task_uses_the_folder_that_the_user_names(raw):
    examples = task.test(str(raw.parents[1]))
    assert examples.targets.tolist() == [0, 9]
    assert task.data_source(str(raw.parents[1])).startswith(str(raw))


def test_the_embedded_subset_is_balanced_and_says_what_it_is():
    data = fashion_data(None)
    assert data.train_images.shape == (3000, 28, 28)
    assert data.test_images.shape == (600, 28, 28)
    assert np.bincount(data.train_labels).tolist() == [300] * 10
    assert np.bincount(data.test_labels).tolist() == [60] * 10


def test_the_embedded_subset_carries_its_source_and_licence():
    document = json.loads((SHIPPED / "fashion_mini.json").read_text("ascii"))
    assert "zalandoresearch/fashion-mnist" in document["source"]
    assert document["licence"].startswith("MIT")
    assert "Permission is hereby granted" in (SHIPPED / "fashion_mini_COPYRIGHT.md").read_text()


def packed(values: bytes, **changes):
    good = {
        "shape": [len(values)],
        "sha256": hashlib.sha256(values).hexdigest(),
        "xz_base85": base64.b85encode(lzma.compress(values)).decode(),
    }
    return {**good, **changes}


def test_an_embedded_array_survives_packing():
    assert unpack("labels", packed(b"\x03\x01\x02")).tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("changes", "came"), [({"shape": [2]}, 3), ({"shape": [9]}, 3), ({"sha256": "0" * 64}, 3)]
)
def test_an_embedded_array_of_other_bytes_is_refused(changes, came):
    given = packed(b"\x03\x01\x02", **changes)
    with pytest.raises(StateError) as caught:
        unpack("labels", given)
    assert str(caught.value) == (
        f"embedded data labels: expected {given['shape'][0]} bytes with the recorded checksum, "
        f"got {came} others; reinstall the project"
    )


def test_an_embedded_array_that_unpacks_without_end_is_cut_short():
    bomb = packed(b"ab", xz_base85=base64.b85encode(lzma.compress(bytes(10**7))).decode())
    with pytest.raises(StateError) as caught:
        unpack("labels", bomb)
    assert str(caught.value) == (
        "embedded data labels: expected 2 bytes with the recorded checksum, "
        "got 3 others; reinstall the project"
    )


def test_an_embedded_array_that_is_not_base85_is_refused():
    with pytest.raises(StateError) as caught:
        unpack("labels", packed(b"ab", xz_base85='"'))
    assert str(caught.value) == (
        "embedded data labels: bad base85 character at position 0; reinstall the project"
    )
