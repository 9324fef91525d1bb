"""Counts of examples on disk: what comes back, and what makes them count as absent."""

import os
from dataclasses import replace

import pytest

from tasks import division_cache
from tasks.division_cache import MOST_ENTRIES, cached_examples, remember_examples
from tasks.partition import Split

SPLIT = Split("dirichlet", 0.3, 0.1, 0)
HELD = (30, 1, 7)


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch):
    monkeypatch.delenv("FEDFREEZE_DATA_DIR", raising=False)


def test_what_was_remembered_comes_back_for_the_same_division_alone(tmp_path):
    assert cached_examples("fashion-cnn", SPLIT, 3, None, root=tmp_path) is None
    assert remember_examples("fashion-cnn", SPLIT, HELD, None, root=tmp_path)
    assert cached_examples("fashion-cnn", SPLIT, 3, None, root=tmp_path) == HELD
    assert cached_examples("fashion-cnn", SPLIT, 4, None, root=tmp_path) is None
    assert cached_examples("cifar10", SPLIT, 3, None, root=tmp_path) is None
    for changed in ({"seed": 1}, {"alpha": 0.4}, {"partition": "iid"}, {"validation_share": 0.2}):
        other = replace(SPLIT, **changed)
        assert cached_examples("fashion-cnn", other, 3, None, root=tmp_path) is None


def test_a_task_of_the_users_own_is_never_kept(tmp_path):
    assert not remember_examples("my_task.py", SPLIT, HELD, None, root=tmp_path)
    assert cached_examples("my_task.py", SPLIT, 3, None, root=tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", ["code_digest", "_installed"])
def test_other_code_or_packages_count_again(change, tmp_path, monkeypatch):
    remember_examples("fashion-cnn", SPLIT, HELD, None, root=tmp_path)
    monkeypatch.setattr(division_cache, change, lambda: ["another"])
    assert cached_examples("fashion-cnn", SPLIT, 3, None, root=tmp_path) is None


def grown(file):
    file.write_bytes(file.read_bytes() + b"more")


CHANGES = {
    "a file that has grown": grown,
    "a file written again": lambda file: os.utime(file, ns=(1, 1)),
    "one more file": lambda file: (file.parent / "more").touch(),
    "a file that is gone": lambda file: file.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_data_that_has_changed_is_counted_again(change, tmp_path):
    data, root = tmp_path / "data", tmp_path / "kept"
    file = data / "set" / "half" / "images"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"old")
    assert remember_examples("cifar10", SPLIT, HELD, str(data), root=root)
    assert cached_examples("cifar10", SPLIT, 3, str(data), root=root) == HELD
    CHANGES[change](file)
    assert cached_examples("cifar10", SPLIT, 3, str(data), root=root) is None


def test_the_folder_of_the_environment_counts_as_one_that_was_named(tmp_path, monkeypatch):
    data, root = tmp_path / "data", tmp_path / "kept"
    data.mkdir()
    remember_examples("fashion-cnn", SPLIT, HELD, None, root=root)
    monkeypatch.setenv("FEDFREEZE_DATA_DIR", str(data))
    (data / "fashion").touch()
    assert cached_examples("fashion-cnn", SPLIT, 3, None, root=root) is None


def test_a_folder_that_is_not_there_or_holds_too_much_is_not_kept(tmp_path, monkeypatch):
    assert not remember_examples("cifar10", SPLIT, HELD, str(tmp_path / "none"), root=tmp_path)
    assert MOST_ENTRIES >= 1_000
    monkeypatch.setattr(division_cache, "MOST_ENTRIES", 2)
    assert not remember_examples("cifar10", SPLIT, HELD, None, root=tmp_path)


@pytest.mark.parametrize("content", ["", "[1, 2", '{"format": 2}', "[30, 1, 7]"])
def test_a_damaged_file_counts_as_absent(content, tmp_path):
    remember_examples("fashion-cnn", SPLIT, HELD, None, root=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(content)
    assert cached_examples("fashion-cnn", SPLIT, 3, None, root=tmp_path) is None


@pytest.mark.parametrize("counts", [(30, 1), (30, 1, 0), (30, 1, True), (30, 1, 1.5), "30,"])
def test_what_are_no_counts_of_so_many_clients_is_absent(counts, tmp_path):
    remember_examples("fashion-cnn", SPLIT, HELD, None, root=tmp_path)
    (path,) = tmp_path.iterdir()
    division_cache.write_cached(path, list(counts) if isinstance(counts, tuple) else counts)
    assert cached_examples("fashion-cnn", SPLIT, 3, None, root=tmp_path) is None


def test_a_home_that_there_is_not_is_no_error(monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", "~nobody-of-that-name/x")
    assert not remember_examples("fashion-cnn", SPLIT, HELD, None)
    assert cached_examples("fashion-cnn", SPLIT, 3, None) is None
