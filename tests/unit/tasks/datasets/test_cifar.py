"""CIFAR in its binary version and as folders of images, both written here."""

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fedfreeze.errors import ConfigError, StateError
from tasks.catalogue.cifar10 import task
from tasks.datasets.cifar import LABELS_10, LABELS_100, cifar10, cifar100
from tasks.sources import Place

REAL = os.environ.get("FEDFREEZE_TEST_DATA")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))


def record(labels: list[int], red: int, green: int, blue: int) -> bytes:
    """One record of the binary version, by its description: all pixels alike but the first."""
    planes = [bytes([level]) * 1024 for level in (red, green, blue)]
    planes[0] = bytes([255]) + planes[0][1:]
    return bytes(labels) + b"".join(planes)


def binary_10(folder: Path) -> Path:
    folder.mkdir()
    for number in range(1, 6):
        content = record([number], 10 * number, 20, 30)
        (folder / f"data_batch_{number}.bin").write_bytes(content)
    (folder / "test_batch.bin").write_bytes(record([9], 1, 2, 3) + record([0], 4, 5, 6))
    return folder


def binary_100(folder: Path) -> Path:
    folder.mkdir()
    # The coarse class first, then the fine one.
    (folder / "train.bin").write_bytes(record([4, 99], 1, 2, 3))
    (folder / "test.bin").write_bytes(record([19, 0], 7, 8, 9))
    return folder


def archived(folder: Path, path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, arcname=folder.name)
    return path


def check_10(data) -> None:
    assert data.train.targets.tolist() == [1, 2, 3, 4, 5]
    assert data.test.targets.tolist() == [9, 0]
    assert data.train.inputs.shape == (5, 3, 32, 32)
    assert data.train.inputs.dtype == torch.uint8
    assert data.train.inputs[2, :, 0, 0].tolist() == [255, 20, 30]
    assert data.train.inputs[2, :, 0, 1].tolist() == [30, 20, 30]
    assert data.test.inputs[1, :, 31, 31].tolist() == [4, 5, 6]


def test_the_binary_version_is_read_from_its_folder(tmp_path):
    folder = binary_10(tmp_path / "cifar-10-batches-bin")
    data = cifar10(Place(tmp_path, demanded=True))
    check_10(data)
    assert data.source == f"{folder} (5 training and 2 test images)"


def test_the_binary_version_is_read_from_its_archive_and_kept(tmp_path):
    folder = binary_10(tmp_path / "cifar-10-batches-bin")
    archive = archived(folder, tmp_path / "cifar-10-binary.tar.gz")
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    for _ in range(2):
        data = cifar10(Place(tmp_path, demanded=True))
        check_10(data)
        assert data.source == f"{archive} (5 training and 2 test images)"
    assert len(list((tmp_path / "home" / "cache").iterdir())) == 1


def test_cifar_100_has_its_fine_classes(tmp_path):
    binary_100(tmp_path / "cifar-100-binary")
    data = cifar100(Place(tmp_path, demanded=True))
    assert data.train.targets.tolist() == [99]
    assert data.test.targets.tolist() == [0]
    assert data.test.inputs[0, :, 5, 5].tolist() == [7, 8, 9]


def test_there_are_as_many_names_as_classes_in_alphabetical_order():
    assert len(set(LABELS_10)) == 10
    assert len(set(LABELS_100)) == 100
    assert list(LABELS_100) == sorted(LABELS_100)
    assert list(LABELS_10) == sorted(LABELS_10)


def picture(level: int, side: int = 32) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((side, side, 3), level, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def pictures(folder: Path) -> Path:
    for name, level in {
        "train/truck/0000.png": 90,
        "train/airplane/0001.png": 11,
        "train/airplane/0000.png": 10,
        "test/frog/0000.png": 60,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(level))
    return folder


def check_pictures(data) -> None:
    # By class, then by name.
    assert data.train.targets.tolist() == [0, 0, 9]
    assert data.train.inputs[:, 1, 3, 4].tolist() == [10, 11, 90]
    assert data.test.targets.tolist() == [6]


def test_a_folder_of_images_for_each_class_is_read(tmp_path):
    pictures(tmp_path / "cifar10")
    check_pictures(cifar10(Place(tmp_path, demanded=True)))


def test_an_archive_of_images_for_each_class_is_read(tmp_path):
    folder = pictures(tmp_path / "source")
    with tarfile.open(tmp_path / "cifar10_jpeg_60k.tar.xz", "w:xz") as archive:
        for half in ("test", "train"):
            archive.add(folder / half, arcname=half)
    check_pictures(cifar10(Place(tmp_path, demanded=True)))


def refused(folder: Path, error: type[Exception] = StateError, read=cifar10) -> str:
    with pytest.raises(error) as caught:
        read(Place(folder, demanded=True))
    return str(caught.value)


def test_a_folder_of_an_unknown_class_is_refused(tmp_path):
    pictures(tmp_path / "cifar10")
    (tmp_path / "cifar10" / "test" / "frog").rename(tmp_path / "cifar10" / "test" / "toad")
    assert refused(tmp_path) == (
        f'{tmp_path}/cifar10: test/toad/0000.png: there is no class "toad" in CIFAR-10; '
        "is this another data set?"
    )


def test_images_of_another_size_are_refused_before_they_are_decoded(tmp_path):
    folder = pictures(tmp_path / "cifar10")
    (folder / "test" / "frog" / "0000.png").write_bytes(picture(1, side=64))
    assert refused(tmp_path) == (
        f"{folder}: test/frog/0000.png: expected an image of 32x32 pixels, got 64x64"
    )


def test_a_folder_without_test_images_is_refused(tmp_path):
    folder = pictures(tmp_path / "cifar10")
    (folder / "test" / "frog" / "0000.png").unlink()
    assert refused(tmp_path) == (
        f"{folder}: expected images as test/CLASS/NAME.jpg, or test_batch.bin, found neither"
    )


def test_a_torn_record_is_refused_by_its_size(tmp_path):
    folder = binary_10(tmp_path / "cifar-10-batches-bin")
    file = folder / "data_batch_3.bin"
    file.write_bytes(file.read_bytes()[:-1])
    assert refused(tmp_path) == (
        f"{file}: expected 1 to 50000 records of 3073 bytes, got 3072 bytes; fetch the file again"
    )


def test_a_class_that_there_is_not_is_refused(tmp_path):
    folder = binary_10(tmp_path / "cifar-10-batches-bin")
    file = folder / "test_batch.bin"
    file.write_bytes(record([10], 1, 2, 3))
    assert refused(tmp_path) == f"{file}: has class 10, expected 0 to 9; is this another data set?"


def test_a_missing_batch_is_named(tmp_path):
    folder = binary_10(tmp_path / "cifar-10-batches-bin")
    (folder / "data_batch_5.bin").unlink()
    assert refused(tmp_path) == (
        f"{folder}/data_batch_5.bin: expected this file beside the others; fetch the set again"
    )


def test_an_archive_without_a_batch_is_refused(tmp_path):
    folder = binary_100(tmp_path / "source")
    (folder / "test.bin").unlink()
    archive = archived(folder, tmp_path / "cifar-100-binary.tar.gz")
    assert refused(tmp_path, read=cifar100) == (
        f"{archive}: expected test.bin in it; fetch the file again"
    )


def test_a_torn_archive_is_refused(tmp_path):
    folder = binary_100(tmp_path / "source")
    archive = archived(folder, tmp_path / "cifar-100-binary.tar.gz")
    archive.write_bytes(archive.read_bytes()[:-20])
    assert refused(tmp_path, read=cifar100) == (
        f"{archive}: cannot be read: Compressed file ended before the end-of-stream marker was "
        "reached; fetch the file again"
    )


def test_what_is_no_archive_is_refused(tmp_path):
    archive = tmp_path / "cifar10_jpeg_60k.tar.xz"
    archive.write_bytes(b"<!DOCTYPE html>" * 100)
    assert refused(tmp_path).startswith(f"{archive}: expected a zip or tar archive: ")


def test_without_data_it_says_where_to_put_it_and_what_fetches_it():
    with pytest.raises(ConfigError) as caught:
        cifar100(Place())
    assert str(caught.value) == (
        "CIFAR-100 does not ship with the project and was found nowhere; put it below a folder as "
        "cifar-100-binary or cifar-100-binary.tar.gz or cifar100 and name that folder with "
        "data-dir or FEDFREEZE_DATA_DIR; fedfreeze data cifar100 --download --data-dir DIR "
        "fetches it"
    )


@pytest.mark.skipif(REAL is None, reason="needs the published files: FEDFREEZE_TEST_DATA")
def test_every_twentieth_test_image_of_the_real_set_is_read(tmp_path):
    few = tmp_path / "cifar10_jpeg_60k.tar.xz"
    with tarfile.open(Path(REAL) / few.name, "r|xz") as archive, tarfile.open(few, "w") as sample:
        for position, member in enumerate(archive):  # the test half comes first
            if position % 20 == 2 and member.isfile():
                sample.addfile(member, archive.extractfile(member))
            if member.name.startswith("train/") and position > 12_000:
                break
    data = cifar10(Place(tmp_path, demanded=True))
    assert torch.bincount(data.test.targets).tolist() == [50] * 10
    # The means that everybody uses, of all training images.
    mean = data.test.inputs.float().mean((0, 2, 3)) / 255
    assert mean.tolist() == pytest.approx(task.preprocessing.mean, abs=0.02)
