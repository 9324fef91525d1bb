"""Tiny-ImageNet as a folder and as its zip file, both written here."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fedfreeze.errors import ConfigError, StateError
from tasks.catalogue.tiny_imagenet import task
from tasks.datasets.tiny_imagenet import tiny_imagenet
from tasks.datasets.tiny_imagenet_classes import CLASSES
from tasks.sources import Place


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))


def picture(level: int, mode: str = "RGB") -> bytes:
    shape = (64, 64, 3) if mode == "RGB" else (64, 64)
    buffer = io.BytesIO()
    Image.fromarray(np.full(shape, level, np.uint8)).save(buffer, "JPEG", quality=100)
    return buffer.getvalue()


# The first and the last class, and some of the published set's images are grey.
FILES = {
    "train/n12267677/images/n12267677_7.JPEG": picture(200),
    "train/n01443537/images/n01443537_0.JPEG": picture(30, "L"),
    "train/n01443537/images/n01443537_1.JPEG": picture(40),
    "train/n01443537/n01443537_boxes.txt": b"n01443537_0.JPEG\t0\t10\t63\t58\n",
    "val/images/val_0.JPEG": picture(70),
    "val/images/val_1.JPEG": picture(80),
    "val/val_annotations.txt": (
        b"val_0.JPEG\tn12267677\t0\t32\t44\t62\nval_1.JPEG\tn01443537\t52\t55\t57\t59\n"
    ),
    "test/images/test_0.JPEG": picture(99),
    "wnids.txt": b"n12267677\nn01443537\n",
}


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "tiny-imagenet-200" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path


def zipped(tmp_path: Path) -> Path:
    path = tmp_path / "tiny-imagenet-200.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(f"tiny-imagenet-200/{name}", content)
    return path


def check(data) -> None:
    first, last = 0, 199
    assert data.train.targets.tolist() == [first, first, last]
    assert data.train.inputs.dtype == torch.uint8
    assert data.train.inputs.shape == (3, 3, 64, 64)
    levels = data.train.inputs[:, :, 5, 5].tolist()
    assert levels == [pytest.approx([level] * 3, abs=1) for level in (30, 40, 200)]
    # What it calls its validation images is the test half.
    assert data.test.targets.tolist() == [first, last]
    assert data.test.inputs[:, 0, 5, 5].tolist() == pytest.approx([80, 70], abs=1)


def test_the_unpacked_folder_is_read(folder):
    data = tiny_imagenet(Place(folder, demanded=True))
    check(data)
    assert data.source == f"{folder}/tiny-imagenet-200 (3 training and 2 test images)"


def test_the_zip_file_is_read(tmp_path):
    path = zipped(tmp_path)
    data = tiny_imagenet(Place(tmp_path, demanded=True))
    check(data)
    assert data.source == f"{path} (3 training and 2 test images)"


def test_the_task_has_a_name_for_each_of_200_classes():
    assert len(CLASSES) == len(set(task.labels)) == 200
    assert list(CLASSES) == sorted(CLASSES)
    assert CLASSES["n02124075"] == "Egyptian cat"
    assert task.labels[0] == "goldfish"


def refused(folder: Path) -> str:
    with pytest.raises(StateError) as caught:
        tiny_imagenet(Place(folder, demanded=True))
    return str(caught.value)


def test_a_class_of_all_of_imagenet_is_refused(folder):
    train = folder / "tiny-imagenet-200" / "train"
    (train / "n12267677").rename(train / "n01440764")
    assert refused(folder) == (
        f"{folder}/tiny-imagenet-200: n01440764 is none of the 200 classes of Tiny-ImageNet; "
        "is this another data set?"
    )


def test_a_validation_image_without_a_class_is_refused(folder):
    path = folder / "tiny-imagenet-200" / "val" / "val_annotations.txt"
    path.write_text("val_0.JPEG\tn12267677\t0\t32\t44\t62\n")
    assert refused(folder) == (
        f"{folder}/tiny-imagenet-200: val_annotations.txt does not name the class of val_1.JPEG; "
        "fetch the set again"
    )


def test_a_set_without_the_list_of_classes_is_refused(folder):
    (folder / "tiny-imagenet-200" / "val" / "val_annotations.txt").unlink()
    assert refused(folder) == (
        f"{folder}/tiny-imagenet-200: expected val/val_annotations.txt; fetch the set again"
    )


def test_a_torn_image_in_the_zip_file_is_named(tmp_path):
    path = tmp_path / "tiny-imagenet-200.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in FILES.items():
            torn = content[:200] if name.endswith("val_1.JPEG") else content
            archive.writestr(f"tiny-imagenet-200/{name}", torn)
    assert refused(tmp_path).startswith(
        f"{path}: tiny-imagenet-200/val/images/val_1.JPEG: cannot be read: "
    )


def test_a_torn_zip_file_is_refused(tmp_path):
    path = zipped(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    assert refused(tmp_path).startswith(f"{path}: expected a zip or tar archive: ")


def test_without_data_it_says_what_fetches_it():
    with pytest.raises(ConfigError) as caught:
        tiny_imagenet(Place())
    assert str(caught.value) == (
        "Tiny-ImageNet does not ship with the project and was found nowhere; put it below a folder "
        "as tiny-imagenet-200 or tiny-imagenet-200.zip and name that folder with data-dir or "
        "FEDFREEZE_DATA_DIR; fedfreeze data tiny-imagenet --download --data-dir DIR fetches it"
    )
