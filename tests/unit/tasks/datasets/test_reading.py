"""Whatever a library raises over a file of somebody else's."""

import lzma
import tokenize
import zipfile
from pathlib import Path

import pytest

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.reading import reading


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "a"), "No such file or directory"),
        (zipfile.BadZipFile("Bad CRC-32"), "Bad CRC-32"),
        (KeyError("There is no item named 'y'"), "There is no item named 'y'"),
        (NotImplementedError("zip file version 7.3"), "zip file version 7.3"),
        (MemoryError(), "MemoryError"),
        (lzma.LZMAError("Corrupt input data"), "Corrupt input data"),
        (tokenize.TokenError("EOF in statement", (2, 0)), "('EOF in statement', (2, 0))"),
        (ValueError("\nfirst\nsecond"), "first"),
        (EOFError(), "it ends too early"),
    ],
)
def test_every_kind_of_damage_names_the_file_and_the_reason_in_one_line(error, said):
    with pytest.raises(StateError) as caught, reading(Path("set.npz")):
        raise error
    assert str(caught.value) == f"set.npz: cannot be read: {said}; fetch the file again"


def test_a_file_that_may_not_be_read_need_not_be_fetched_again():
    with pytest.raises(StateError) as caught, reading(Path("set.npz")):
        raise PermissionError(13, "Permission denied", "set.npz")
    assert str(caught.value) == (
        "set.npz: cannot be read: Permission denied; allow the user that runs this to read it"
    )


def test_an_error_of_the_project_passes_as_it_is():
    with pytest.raises(ConfigError) as caught, reading(Path("set.npz")):
        raise ConfigError("expected a folder")
    assert str(caught.value) == "expected a folder"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_stop_is_no_damage(stop):
    with pytest.raises(stop), reading(Path("set.npz")):
        raise stop
