"""Fashion-MNIST from folders in torchvision's layout, Debian's package, or the embedded subset."""

import gzip
import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from fedfreeze.errors import ConfigError, StateError
from tasks.catalogue.fashion_cnn import task
from tasks.datasets.fashion_mnist import fashion_mnist
from tasks.sources import Place

SHIPPED = resources.files("tasks") / "data"
NOWHERE = Path("/nonexistent")

IMAGES = np.arange(3 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(3, 28, 28)
LABELS = np.array([0, 9, 4], np.uint8)


def idx(array: np.ndarray) -> bytes:
    """The array as an IDX file, written by the format's description."""
    header = bytes((0, 0, 8, array.ndim))
    return header + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()


def write(folder: Path) -> None:
    folder.mkdir(parents=True)
    for part, images, labels in (("train", IMAGES, LABELS), ("t10k", IMAGES[:2], LABELS[:2])):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))


@pytest.fixture
def raw(tmp_path) -> Path:
    folder = tmp_path / "FashionMNIST" / "raw"
    write(folder)
    return folder


def load(raw: Path):
    return fashion_mnist(Place(raw.parents[1], demanded=True), NOWHERE)


def refused(raw: Path, error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        load(raw)
    return str(caught.value)


def test_a_folder_is_read_as_torchvision_lays_it_out(raw):
    data = load(raw)
    assert data.train.inputs.dtype == torch.uint8
    assert np.array_equal(data.train.inputs.numpy(), IMAGES[:, None])
    assert data.train.targets.tolist() == [0, 9, 4]
    assert data.test.targets.tolist() == [0, 9]
    assert data.source == f"{raw} (3 training and 2 test images)"
    assert data.group == ""


def test_debians_package_is_used_when_no_folder_is_named(tmp_path):
    package = tmp_path / "fashion-mnist"
    write(package)
    for file in list(package.iterdir()):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    data = fashion_mnist(Place(), package)
    assert data.source == f"{package} (3 training and 2 test images)"


def test_a_folder_goes_before_the_package(raw, tmp_path):
    package = tmp_path / "fashion-mnist"
    write(package)
    data = fashion_mnist(Place(raw.parents[1]), package)
    assert data.source == f"{raw} (3 training and 2 test images)"


def test_a_named_folder_is_never_replaced_by_the_embedded_data(tmp_path):
    with pytest.raises(ConfigError) as caught:
        fashion_mnist(Place(tmp_path, demanded=True), NOWHERE)
    assert str(caught.value) == (
        f"data-dir: expected Fashion-MNIST in {tmp_path} as FashionMNIST/raw, found none of these"
    )


def test_a_folder_without_a_file_says_which(raw):
    (raw / "train-images-idx3-ubyte").unlink()
    assert refused(raw, ConfigError) == (
        f"data-dir: expected {raw}/train-images-idx3-ubyte or train-images-idx3-ubyte.gz beside "
        "it, found neither; leave data-dir out to use the embedded subset"
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
    folder = str(raw.parents[1])
    assert task.test(folder).targets.tolist() == [0, 9]
    assert task.dataset(folder).source.startswith(str(raw))


def test_the_embedded_subset_is_balanced_and_says_what_it_is():
    data = fashion_mnist(Place(), NOWHERE)
    assert data.train.inputs.shape == (3000, 1, 28, 28)
    assert data.test.inputs.shape == (600, 1, 28, 28)
    assert torch.bincount(data.train.targets).tolist() == [300] * 10
    assert torch.bincount(data.test.targets).tolist() == [60] * 10
    assert data.source == (
        "Fashion-mini, embedded (3000 training and 600 test images of Fashion-MNIST)"
    )


def test_the_embedded_subset_carries_its_source_and_licence():
    document = json.loads((SHIPPED / "fashion_mini.json").read_text("ascii"))
    assert "zalandoresearch/fashion-mnist" in document["source"]
    assert document["licence"].startswith("MIT")
    assert "Permission is hereby granted" in (SHIPPED / "fashion_mini_COPYRIGHT.md").read_text()
