"""Layouts on disk: what comes back, what counts as absent, and that torch is not needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from tasks import layout_cache
from tasks.cached_json import write_cached
from tasks.layout_cache import cached_layout, layout_key, remember
from tasks.options import Options

LAYOUT = Layout(
    "fashion-cnn",
    (
        Layer(
            "body",
            (
                TensorSpec("body.weight", (3, 4), "float32"),
                TensorSpec("body.count", (), "int64", "buffer"),
            ),
            LayerCosts(1.0, 0.1, 1 / 3, 4e300, 5.0, 6.5, 7.0, 8.0),
            cut_bytes=16.5,
        ),
        Layer("head", (TensorSpec("head.weight", (2, 3), "float32", "constant"),)),
    ),
)


def the_file(root):
    (path,) = root.iterdir()
    return path


def test_nothing_is_there_before_something_is_remembered(tmp_path):
    assert cached_layout("fashion-cnn", root=tmp_path) is None
    assert cached_layout("fashion-cnn", root=tmp_path / "no such folder") is None


def test_what_was_remembered_comes_back_to_the_last_bit(tmp_path):
    assert remember("fashion-cnn", None, LAYOUT, root=tmp_path / "new")
    assert cached_layout("fashion-cnn", root=tmp_path / "new") == LAYOUT
    assert cached_layout("fashion-cnn", Options(), root=tmp_path / "new") == LAYOUT


def test_each_task_and_each_choice_of_options_has_a_layout_of_its_own(tmp_path):
    choices = [
        ("fashion-cnn", Options()),
        ("cifar10", Options()),
        ("fashion-cnn", Options(model="vit-tiny")),
        ("fashion-cnn", Options(layers="modules")),
        ("fashion-cnn", Options(layers=(("all", ("*",)),))),
    ]
    assert len({layout_key(*choice) for choice in choices}) == len(choices)
    remember("fashion-cnn", Options(model="vit-tiny"), LAYOUT, root=tmp_path)
    found = [cached_layout(*choice, root=tmp_path) for choice in choices]
    assert found == [None, None, LAYOUT, None, None]


@pytest.mark.parametrize("name", ["my_task.py", "my_package.my_task", "no-such-task"])
def test_a_task_of_the_users_own_is_never_kept(name, tmp_path):
    assert layout_key(name, None) is None
    assert not remember(name, None, LAYOUT, root=tmp_path)
    assert cached_layout(name, root=tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", ["code_digest", "_releases"])
def test_another_release_traces_again(change, tmp_path, monkeypatch):
    remember("fashion-cnn", None, LAYOUT, root=tmp_path)
    monkeypatch.setattr(layout_cache, change, lambda: "another")
    assert cached_layout("fashion-cnn", root=tmp_path) is None


def changed(document, **changes):
    return json.dumps({**document, **changes})


DAMAGES = {
    "empty": lambda text, document: "",
    "torn": lambda text, document: text[: len(text) // 2],
    "not text": lambda text, document: b"\xff\xfe",
    "another document": lambda text, document: "[1, 2]",
    "a number": lambda text, document: "7",
    "nested": lambda text, document: "[" * 100_000,
    "no digest": lambda text, document: json.dumps({"format": 2, "content": document["content"]}),
    "another format": lambda text, document: changed(document, format=1),
    "another layout": lambda text, document: changed(
        document, content={**document["content"], "model": "other"}
    ),
    "no layout": lambda text, document: changed(document, content=None),
}


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_damaged_file_counts_as_absent_and_is_replaced(damage, tmp_path):
    remember("fashion-cnn", None, LAYOUT, root=tmp_path)
    path = the_file(tmp_path)
    text = path.read_text()
    came = DAMAGES[damage](text, json.loads(text))
    path.write_bytes(came if isinstance(came, bytes) else came.encode())
    assert cached_layout("fashion-cnn", root=tmp_path) is None
    assert remember("fashion-cnn", None, LAYOUT, root=tmp_path)
    assert cached_layout("fashion-cnn", root=tmp_path) == LAYOUT


def test_a_file_whose_digest_is_right_and_which_is_no_layout_counts_as_absent(tmp_path):
    remember("fashion-cnn", None, LAYOUT, root=tmp_path)
    path = the_file(tmp_path)
    for content in ({"model": "m", "layers": []}, {"model": "m"}, {"model": "m", "layers": [7]}):
        assert write_cached(path, content)
        assert cached_layout("fashion-cnn", root=tmp_path) is None


def test_a_place_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert not remember("fashion-cnn", None, LAYOUT, root=tmp_path / "file")
    assert cached_layout("fashion-cnn", root=tmp_path / "file") is None


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    remember("fashion-cnn", None, LAYOUT, root=tmp_path)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert not remember("fashion-cnn", None, Layout("other", LAYOUT.layers), root=tmp_path)
    assert cached_layout("fashion-cnn", root=tmp_path) == LAYOUT
    assert len(list(tmp_path.iterdir())) == 1


def test_it_lies_in_the_projects_home_and_is_read_without_torch(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path))
    assert remember("fashion-cnn", None, LAYOUT)
    assert the_file(tmp_path / "cache" / "layouts").suffix == ".json"
    script = (
        "import sys; from tasks.layout_cache import cached_layout; "
        "print(cached_layout('fashion-cnn').fingerprint, 'torch' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(layout_cache.__file__).parent.parent,
    )
    assert found.stdout.split() == [LAYOUT.fingerprint, "False"]


def test_a_home_that_there_is_not_is_no_error(monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", "~nobody-of-that-name/x")
    assert not remember("fashion-cnn", None, LAYOUT)
    assert cached_layout("fashion-cnn") is None
