"""Data sets in Hugging Face's parquet files, written here as the hub stores them."""

import io
import json
import sys

import numpy as np
import pytest
from PIL import Image

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.ag_news import ag_news
from tasks.datasets.femnist import femnist
from tasks.datasets.parquet import class_names, parts_of, rows
from tasks.datasets.sst2 import sst2
from tasks.sources import Place

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))


def write(path, columns: dict, names: dict[str, list[str]] | None = None):
    """A table, with the class names in its metadata where the hub puts them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pyarrow.table(columns)
    if names:
        features = {
            column: {"names": classes, "_type": "ClassLabel"} for column, classes in names.items()
        }
        said = json.dumps({"info": {"features": features}}).encode()
        table = table.replace_schema_metadata({b"huggingface": said})
    parquet.write_table(table, path)
    return path


def part(folder, half, number=0, count=1):
    return folder / "data" / f"{half}-{number:05d}-of-{count:05d}.parquet"


def png(value: int, side: int = 28) -> dict:
    out = io.BytesIO()
    Image.fromarray(np.full((side, side), value, np.uint8)).save(out, "PNG")
    return {"bytes": out.getvalue(), "path": None}


def load(read, tmp_path):
    return read(Place(tmp_path, demanded=True))


def test_ag_news_is_read_part_by_part(tmp_path):
    folder = tmp_path / "ag_news"
    write(part(folder, "train", 1, 2), {"text": ["third"], "label": [0]})
    write(part(folder, "train", 0, 2), {"text": ["first", r"se\cond"], "label": [3, 1]})
    write(part(folder, "test"), {"text": ["held out"], "label": [2]})
    found = load(ag_news, tmp_path)
    assert found.train.texts == ("first", "se cond", "third")
    assert found.train.classes == (3, 1, 0)
    assert (found.test.texts, found.test.classes) == (("held out",), (2,))


def test_sst_2_tests_on_its_validation_half(tmp_path):
    folder = tmp_path / "sst2"
    for half, label in (("train", 1), ("validation", 0), ("test", -1)):
        write(part(folder, half), {"idx": [0], "sentence": [f"a {half}"], "label": [label]})
    found = load(sst2, tmp_path)
    assert (found.train.texts, found.train.classes) == (("a train",), (1,))
    assert (found.test.texts, found.test.classes) == (("a validation",), (0,))


def test_files_may_lie_without_a_data_folder(tmp_path):
    write(tmp_path / "train-00000-of-00001.parquet", {"a": [1]})
    assert [path.name for path in parts_of(tmp_path, "train")] == ["train-00000-of-00001.parquet"]
    assert parts_of(tmp_path, "test") == ()


def test_a_missing_part_is_no_smaller_data_set(tmp_path):
    write(part(tmp_path, "train", 0, 2), {"a": [1]})
    with pytest.raises(StateError) as caught:
        parts_of(tmp_path, "train")
    assert str(caught.value) == (
        f"{tmp_path}/data: expected 2 parts of train, got 1; fetch the data set again"
    )


def test_a_missing_half_is_said(tmp_path):
    write(part(tmp_path / "sst2", "train"), {"sentence": ["x"], "label": [0]})
    with pytest.raises(StateError) as caught:
        load(sst2, tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/sst2: expected validation-00000-of-00001.parquet beside the training half, "
        "found none; fetch the data set again"
    )


def test_another_table_is_refused(tmp_path):
    path = write(part(tmp_path / "ag_news", "train"), {"words": ["x"], "label": [0]})
    write(part(tmp_path / "ag_news", "test"), {"text": ["x"], "label": [0]})
    with pytest.raises(StateError) as caught:
        load(ag_news, tmp_path)
    assert str(caught.value) == (
        f"{path}: expected the columns text, label, got words, label: text is not there; "
        "is this another data set?"
    )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": ["x"], "label": [4]}, 'expected a class, one of 0, 1, 2, 3, got "4"'),
        ({"text": ["x"], "label": [None]}, 'expected a class, one of 0, 1, 2, 3, got "None"'),
    ],
)
def test_a_class_that_is_none_is_refused(tmp_path, row, said):
    path = write(part(tmp_path / "ag_news", "train"), row)
    write(part(tmp_path / "ag_news", "test"), {"text": ["x"], "label": [0]})
    with pytest.raises(StateError) as caught:
        load(ag_news, tmp_path)
    assert str(caught.value) == f"{path}:1: {said}"


def test_a_row_without_a_text_is_refused(tmp_path):
    columns = {"text": pyarrow.array([None], pyarrow.string()), "label": [0]}
    path = write(part(tmp_path / "ag_news", "train"), columns)
    write(part(tmp_path / "ag_news", "test"), {"text": ["x"], "label": [0]})
    with pytest.raises(StateError) as caught:
        load(ag_news, tmp_path)
    assert str(caught.value) == f"{path}: row 1: expected a text in text, got None"


def test_a_torn_file_is_refused(tmp_path):
    path = write(part(tmp_path / "ag_news", "train"), {"text": ["x"] * 99, "label": [0] * 99})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StateError) as caught:
        list(rows(path, ("text",)))
    assert str(caught.value).startswith(f"{path}: cannot be read: ")
    assert str(caught.value).endswith("; fetch the file again")


def test_without_pyarrow_the_error_names_the_extra(tmp_path, monkeypatch):
    path = write(part(tmp_path / "ag_news", "train"), {"text": ["x"], "label": [0]})
    write(part(tmp_path / "ag_news", "test"), {"text": ["x"], "label": [0]})
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigError) as caught:
        load(ag_news, tmp_path)
    assert str(caught.value) == (
        f"{path}: parquet files need the package pyarrow: import of pyarrow.parquet halted; "
        "None in sys.modules; pip install 'fedfreeze[hub]'"
    )


def test_class_names_are_what_the_hub_wrote(tmp_path):
    named = write(tmp_path / "a.parquet", {"label": [0]}, {"label": ["no", "yes"]})
    bare = write(tmp_path / "b.parquet", {"label": [0]})
    assert class_names(named, "label") == ("no", "yes")
    assert class_names(named, "other") is None
    assert class_names(bare, "label") is None


LETTERS = [*"0123456789", *map(chr, range(65, 91)), *map(chr, range(97, 123))]


def femnist_file(tmp_path, **changes):
    """Twelve images of one writer, then two of another."""
    columns = {
        "image": [png(value) for value in range(12)] + [png(200), png(201)],
        "writer_id": ["f1"] * 12 + ["f0"] * 2,
        "hsf_id": [0] * 14,
        "character": [*range(12), 60, 61],
        **changes,
    }
    return write(part(tmp_path / "femnist", "train"), columns, {"character": LETTERS})


def test_every_tenth_image_of_a_writer_is_held_out(tmp_path):
    femnist_file(tmp_path)
    data = load(femnist, tmp_path)
    assert data.group == "writer"
    assert data.train.inputs[:, 0, 0, 0].tolist() == [200, 201, *range(9), 10, 11]
    assert data.train.targets.tolist() == [60, 61, *range(9), 10, 11]
    assert data.train_groups.tolist() == [0, 0] + [1] * 11
    assert data.test.inputs.shape == (1, 1, 28, 28)
    assert (data.test.inputs[0, 0, 0, 0], data.test.targets, data.test_groups) == (9, 9, 1)


def test_classes_in_another_order_are_refused(tmp_path):
    path = femnist_file(tmp_path)
    write(path, {"image": [png(0)], "writer_id": ["a"], "character": [0]}, {"character": ["z"]})
    with pytest.raises(StateError) as caught:
        load(femnist, tmp_path)
    assert str(caught.value) == (
        f"{path}: expected the classes {''.join(LETTERS)} in this order, got z; "
        "is this another data set?"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"image": [png(0, side=27)] * 14},
            "row 1: expected an image of 28x28 pixels, got 27x27",
        ),
        (
            {"image": [{"bytes": None, "path": "0.png"}] * 14},
            "row 1: expected an image as bytes, got NoneType",
        ),
        ({"character": [62] * 14}, "row 1: expected a class from 0 to 61, got 62"),
    ],
)
def test_what_is_no_character_is_refused(tmp_path, changes, said):
    path = femnist_file(tmp_path, **changes)
    with pytest.raises(StateError) as caught:
        load(femnist, tmp_path)
    assert str(caught.value) == f"{path}: {said}"
