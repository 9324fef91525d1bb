"""FEMNIST in LEAF's files, written here as its preprocessing does."""

import json
from pathlib import Path

import pytest
import torch

import tasks.datasets.femnist_leaf as module
from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.femnist import LABELS, femnist
from tasks.sources import Place


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))


def image(ink: float) -> list[float]:
    return [ink] + [1.0] * 783


def document(**writers) -> dict:
    return {
        "users": list(writers),
        "num_samples": [len(data["y"]) for data in writers.values()],
        "user_data": writers,
    }


ANNA = {"x": [image(0.0), image(0.2)], "y": [61, 10]}
BERT = {"x": [image(1.0)], "y": [0]}


@pytest.fixture
def folder(tmp_path) -> Path:
    files = {
        "train/all_data_0_niid_0_keep_0_train_9.json": document(f0001_10=BERT),
        "train/all_data_1_niid_0_keep_0_train_9.json": document(f0000_41=ANNA),
        "test/all_data_0_niid_0_keep_0_test_9.json": document(f0002_07=BERT, f0000_41=BERT),
    }
    for name, content in files.items():
        path = tmp_path / "femnist" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return tmp_path


def load(folder: Path):
    return femnist(Place(folder, demanded=True))


def test_a_writer_has_the_same_number_in_both_halves(folder):
    data = load(folder)
    # f0000_41, f0001_10, f0002_07 by name; files in their order.
    assert data.train_groups.tolist() == [1, 0, 0]
    assert data.test_groups.tolist() == [2, 0]
    assert data.group == "writer"
    assert data.source == f"{folder}/femnist (3 training and 2 test images)"


def test_pixels_become_bytes_and_classes_numbers(folder):
    data = load(folder)
    assert data.train.inputs.dtype == torch.uint8
    assert data.train.inputs.shape == (3, 1, 28, 28)
    assert data.train.inputs[:, 0, 0, 0].tolist() == [255, 0, 51]  # 0.2 of 255
    assert data.train.targets.tolist() == [0, 61, 10]
    assert [LABELS[target] for target in data.train.targets] == ["0", "z", "A"]


def test_a_file_is_read_in_pieces_of_any_size(folder, monkeypatch):
    whole = load(folder)
    for chunk in (1, 7, 4096):
        monkeypatch.setattr(module, "_CHUNK", chunk)
        monkeypatch.setenv("FEDFREEZE_HOME", str(folder / f"home-{chunk}"))
        piecewise = load(folder)
        assert torch.equal(piecewise.train.inputs, whole.train.inputs)
        assert piecewise.test_groups.tolist() == whole.test_groups.tolist()


def test_it_is_found_where_leaf_makes_it(folder):
    (folder / "leaf/data/femnist").mkdir(parents=True)
    (folder / "femnist").rename(folder / "leaf/data/femnist/data")
    assert load(folder).source.startswith(f"{folder}/leaf/data/femnist/data ")


def first_file(folder: Path) -> Path:
    return folder / "femnist/train/all_data_0_niid_0_keep_0_train_9.json"


def refused(folder: Path, error: type[Exception] = StateError) -> str:
    with pytest.raises(error) as caught:
        load(folder)
    return str(caught.value)


@pytest.mark.parametrize(
    "writer",
    [
        {"x": [image(1.5)], "y": [0]},
        {"x": [image(-0.1)], "y": [0]},
        {"x": [image(float("nan"))], "y": [0]},
        {"x": [image(0.0)], "y": [62]},
        {"x": [image(0.0)], "y": [-1]},
        {"x": [image(0.0)], "y": []},
    ],
)
def test_values_that_are_no_image_or_class_are_refused(folder, writer):
    path = first_file(folder)
    path.write_text(json.dumps(document(f1=writer)))
    assert refused(folder) == (
        f"{path}: writer f1: expected a class from 0 to 61 for each image and numbers from 0 to 1, "
        "got others; is this another data set?"
    )


@pytest.mark.parametrize(
    "writer", [{"x": [[0.0] * 783], "y": [0]}, {"x": [["a"] * 784], "y": [0]}, {"y": [0]}]
)
def test_images_of_another_shape_are_refused(folder, writer):
    path = first_file(folder)
    path.write_text(json.dumps(document(f1={**writer})))
    assert refused(folder).startswith(
        f"{path}: writer f1: expected x with 784 numbers an image and y with their classes, got "
        "something else: "
    )


def test_a_torn_file_is_refused(folder):
    path = first_file(folder)
    path.write_text(path.read_text()[:-40])
    assert refused(folder) == f"{path}: ends before }}; make the file again"


def test_a_file_without_data_of_writers_is_refused(folder):
    path = first_file(folder)
    path.write_text("[1, 2, 3]")
    assert refused(folder) == f'{path}: ends before "user_data"; make the file again'


def test_a_file_without_an_end_is_not_read_into_memory(folder, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 100)
    monkeypatch.setattr(module, "_MOST_CHARACTERS", 1000)
    path = first_file(folder)
    assert refused(folder) == (
        f"{path}: expected }} within 1000 characters; is this one of LEAF's files?"
    )


def test_a_half_without_files_says_what_makes_them(folder):
    for path in (folder / "femnist/test").iterdir():
        path.unlink()
    assert refused(folder, ConfigError) == (
        f"{folder}/femnist/test: expected LEAF's all_data_*.json files, found none; "
        "run LEAF's preprocess.sh to its end"
    )


def test_without_data_it_says_what_makes_it():
    with pytest.raises(ConfigError) as caught:
        femnist(Place())
    assert str(caught.value) == (
        "FEMNIST does not ship with the project and was found nowhere; put it below a folder as "
        "femnist/train or femnist/data/train or leaf/data/femnist/data/train or femnist and name "
        "that folder with data-dir or FEDFREEZE_DATA_DIR; LEAF (github.com/TalwalkarLab/leaf) "
        "makes it: ./preprocess.sh -s niid --sf 1.0 -k 0 -t sample in its data/femnist; "
        "Hugging Face has it as flwrlabs/femnist"
    )


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    for half in ("train", "test"):
        (tmp_path / "femnist" / half / "all_data_0.json").mkdir(parents=True)
    with pytest.raises(StateError) as caught:
        femnist(Place(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}/femnist/train/all_data_0.json: cannot be read: Is a directory; "
        "fetch the file again"
    )
