"""Saying where data is without reading it."""

from dataclasses import replace

import pytest

from fedfreeze.errors import ConfigError
from tasks.at_hand import at_hand
from tasks.loading import load

FASHION = load("fashion-cnn")


@pytest.fixture(autouse=True)
def _nobody_named_a_folder(monkeypatch):
    monkeypatch.delenv("FEDFREEZE_DATA_DIR", raising=False)


def unread(place):
    place.find("made-up data", ["made-up/file.bin"])
    raise AssertionError("the reader went on to read")


def test_a_file_that_is_there_is_named_and_not_read(tmp_path):
    (tmp_path / "made-up").mkdir()
    path = tmp_path / "made-up" / "file.bin"
    path.write_bytes(b"torn")
    assert at_hand(replace(FASHION, read=unread), str(tmp_path)) == str(path)


def test_the_folder_of_the_environment_is_looked_at_too(tmp_path, monkeypatch):
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / "file.bin").touch()
    monkeypatch.setenv("FEDFREEZE_DATA_DIR", str(tmp_path))
    assert at_hand(replace(FASHION, read=unread), None).startswith(str(tmp_path))


def test_what_a_named_folder_lacks_is_not_here_even_if_a_part_ships(tmp_path):
    with pytest.raises(ConfigError, match="found none of these"):
        at_hand(FASHION, str(tmp_path))


def test_what_ships_with_the_project_is_named_by_its_source():
    assert at_hand(FASHION, None) == FASHION.dataset(None).source
