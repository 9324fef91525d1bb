"""Where data may be."""

from pathlib import Path

import pytest

from fedfreeze.errors import ConfigError
from tasks.sources import Place, expanded, missing, place


@pytest.fixture(autouse=True)
def _nobody_named_a_folder(monkeypatch):
    monkeypatch.delenv("FEDFREEZE_DATA_DIR", raising=False)


def test_a_named_folder_must_have_the_data_and_that_of_the_environment_may(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_DATA_DIR", str(tmp_path))
    assert place(None) == Place(tmp_path)
    assert place("named") == Place(Path("named"), demanded=True)


@pytest.mark.parametrize("source", ["data-dir", "FEDFREEZE_DATA_DIR"])
def test_a_home_that_nobody_has_is_refused(monkeypatch, source):
    folder = "~nobody-of-that-name/data"
    monkeypatch.setenv("FEDFREEZE_DATA_DIR", folder)
    with pytest.raises(ConfigError) as caught:
        place(folder if source == "data-dir" else None)
    assert str(caught.value) == (
        f'{source}: expected a folder, got "{folder}", and this machine knows no home '
        "~nobody-of-that-name; write the path in full"
    )


def test_a_home_is_filled_in(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/data", "data-dir") == tmp_path / "data"


@pytest.mark.parametrize("folder", ["a" * 5000, "not\0a path", "nowhere"])
def test_a_folder_that_no_system_could_have_holds_nothing(folder):
    assert Place(Path(folder)).find("digits", ["digits.npz"]) is None
    with pytest.raises(ConfigError) as caught:
        Place(Path(folder), demanded=True).find("digits", ["digits.npz"])
    assert str(caught.value) == (
        f"data-dir: expected digits in {folder} as digits.npz, found none of these"
    )


def test_data_that_is_nowhere_is_said_with_the_places_that_were_looked_at(monkeypatch):
    rest = (
        "; put it below a folder as digits.npz and name that folder with data-dir or "
        "FEDFREEZE_DATA_DIR; ask for it"
    )
    begin = "digits does not ship with the project and was found nowhere"
    assert str(missing("digits", ["digits.npz"], "ask for it")) == begin + rest
    monkeypatch.setenv("FEDFREEZE_DATA_DIR", "/mnt/sets")
    assert str(missing("digits", ["digits.npz"], "ask for it")) == (
        f"{begin}, nor in FEDFREEZE_DATA_DIR=/mnt/sets{rest}"
    )
