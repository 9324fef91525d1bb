"""Decoded data that later processes find."""

import logging
import os

import numpy as np
import pytest

from tasks.datasets.kept import fingerprint, kept


@pytest.fixture
def origin(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))
    path = tmp_path / "archive"
    path.write_bytes(b"first")
    return path


class Decoder:
    """Fills two arrays and counts how often it was asked to."""

    def __init__(self):
        self.calls = 0

    def __call__(self, allocate):
        self.calls += 1
        allocate("images", (2, 3))[:] = [[1, 2, 3], [4, 5, 6]]
        allocate("owners", (2,), "int64")[:] = [-1, 2**40]


def check(arrays) -> None:
    assert arrays["images"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert arrays["images"].dtype == np.uint8
    assert arrays["owners"].tolist() == [-1, 2**40]


def test_a_second_process_does_not_decode(origin):
    decoder = Decoder()
    for _ in range(3):
        check(kept("set-1", origin, decoder))
    assert decoder.calls == 1


def test_other_content_is_decoded_anew(origin):
    decoder = Decoder()
    kept("set-1", origin, decoder)
    origin.write_bytes(b"other")
    check(kept("set-1", origin, decoder))
    assert decoder.calls == 2


def test_another_version_of_the_decoder_is_another_entry(origin):
    decoder = Decoder()
    kept("set-1", origin, decoder)
    kept("set-2", origin, decoder)
    assert decoder.calls == 2


def test_a_torn_array_is_made_again(origin, tmp_path, caplog):
    decoder = Decoder()
    kept("set-1", origin, decoder)
    (file,) = (tmp_path / "home" / "cache").glob("*/images.npy")
    file.write_bytes(file.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING):
        check(kept("set-1", origin, decoder))
    assert decoder.calls == 2
    assert "cannot be read and is made again" in caplog.text


@pytest.mark.parametrize("lost", ["images.npy", "names.json"])
def test_an_entry_that_lost_a_file_is_made_again(origin, tmp_path, lost):
    decoder = Decoder()
    kept("set-1", origin, decoder)
    (file,) = (tmp_path / "home" / "cache").glob(f"*/{lost}")
    file.unlink()
    check(kept("set-1", origin, decoder))
    check(kept("set-1", origin, decoder))
    assert decoder.calls == 2


def test_an_array_without_a_header_is_made_again(origin, tmp_path):
    decoder = Decoder()
    kept("set-1", origin, decoder)
    (file,) = (tmp_path / "home" / "cache").glob("*/owners.npy")
    file.write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': (".ljust(118))
    check(kept("set-1", origin, decoder))
    assert decoder.calls == 2


def test_nothing_half_done_stays_when_decoding_fails(origin, tmp_path):
    def fail(allocate):
        allocate("images", (2,))
        raise ValueError("torn")

    with pytest.raises(ValueError, match="torn"):
        kept("set-1", origin, fail)
    assert list((tmp_path / "home" / "cache").iterdir()) == []


def test_a_home_that_cannot_be_written_costs_only_time(origin, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING):
        check(kept("set-1", origin, Decoder()))
    assert "decoded data is not kept" in caplog.text


def test_what_is_written_into_the_arrays_does_not_reach_the_disk(origin):
    decoder = Decoder()
    kept("set-1", origin, decoder)["images"][:] = 0
    check(kept("set-1", origin, decoder))


def test_a_folders_fingerprint_follows_its_files(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "a").write_bytes(b"1")
    seen = {fingerprint(folder)}
    os.utime(folder / "a", ns=(1, 1))
    seen.add(fingerprint(folder))
    (folder / "b").write_bytes(b"")
    seen.add(fingerprint(folder))
    (folder / "b").rename(folder / "c")
    seen.add(fingerprint(folder))
    assert len(seen) == 4
    assert fingerprint(folder) in seen
