"""Spoken digits, as one archive and as the original recordings."""

import os
import wave
from pathlib import Path

import numpy as np
import pytest
import torch

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.spoken_digits import spoken_digits
from tasks.sources import Place

REAL = os.environ.get("FEDFREEZE_TEST_DATA")


def load(folder):
    return spoken_digits(Place(folder, demanded=True))


def refused(folder, error):
    with pytest.raises(error) as caught:
        load(folder)
    return str(caught.value)


def record(path: Path, samples, rate=8000, channels=1, width=2):
    """A recording as the data set publishes it."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(np.asarray(samples, "<i2").tobytes())


@pytest.fixture
def recordings(tmp_path):
    folder = tmp_path / "free-spoken-digit-dataset" / "recordings"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def archive(tmp_path):
    def write(**changes):
        arrays = {
            "x": np.arange(4 * 8000).reshape(4, 8000).astype(np.int16),
            "y": np.array([0, 9, 3, 3], np.uint8),
            "speaker": np.array([2, 0, 2, 0], np.uint8),
            "index": np.array([4, 5, 0, 49], np.uint8),
            **changes,
        }
        np.savez_compressed(tmp_path / "fsdd_8k_1s.npz", **arrays)
        return tmp_path / "fsdd_8k_1s.npz", arrays

    return write


def test_an_archive_is_divided_by_the_index_of_its_recordings(tmp_path, archive):
    path, arrays = archive()
    data = load(tmp_path)
    assert data.train.inputs.dtype == torch.int16
    assert np.array_equal(data.train.inputs.numpy(), arrays["x"][[1, 3]])
    assert np.array_equal(data.test.inputs.numpy(), arrays["x"][[0, 2]])
    assert data.train.targets.tolist() == [9, 3]
    assert data.test.targets.tolist() == [0, 3]
    # The same person has the same number in both halves.
    assert (data.train_groups.tolist(), data.test_groups.tolist()) == ([0, 0], [1, 1])
    assert (data.group, data.source) == ("speaker", f"{path} (4 recordings)")


def test_an_archive_with_an_eleventh_digit_is_refused(tmp_path, archive):
    path, _ = archive(y=np.array([0, 9, 10, 3], np.uint8))
    assert refused(tmp_path, StateError) == (
        f"{path}: expected digits 0 to 9, got 10; is this another data set?"
    )


def test_recordings_are_cut_or_end_in_silence_after_one_second(tmp_path, recordings):
    long, short = np.arange(9000) - 4500, np.array([5, -6, 7])
    record(recordings / "7_jackson_32.wav", long)
    record(recordings / "0_theo_4.wav", short)
    record(recordings / "1_jackson_5.wav", [])
    (recordings / "README.md").write_text("not a recording")
    data = load(tmp_path)
    assert data.train.targets.tolist() == [1, 7]
    assert data.train.inputs[1].tolist() == long[:8000].tolist()
    assert data.train.inputs[0].tolist() == [0] * 8000
    assert data.test.targets.tolist() == [0]
    assert data.test.inputs[0].tolist() == [5, -6, 7] + [0] * 7997
    assert (data.train_groups.tolist(), data.test_groups.tolist()) == ([0, 0], [1])
    assert data.source == f"{recordings} (3 recordings)"


@pytest.mark.parametrize(
    ("kind", "came"),
    [
        ({"rate": 16000}, "4 samples at 16000 Hz, 1 channels of 2 bytes"),
        ({"channels": 2}, "2 samples at 8000 Hz, 2 channels of 2 bytes"),
        ({"width": 1}, "8 samples at 8000 Hz, 1 channels of 1 bytes"),
    ],
)
def test_sound_of_another_kind_is_refused(tmp_path, recordings, kind, came):
    record(recordings / "7_jackson_32.wav", [1, 2, 3, 4], **kind)
    assert refused(tmp_path, StateError) == (
        f"{recordings}/7_jackson_32.wav: expected at most 60 s at 8000 Hz, 1 channel of 2 bytes, "
        f"got {came}"
    )


def test_a_header_that_claims_hours_is_refused(tmp_path, recordings):
    file = recordings / "7_jackson_32.wav"
    record(file, [1, 2])
    raw = bytearray(file.read_bytes())
    raw[40:44] = (2**31).to_bytes(4, "little")  # the size of the data chunk
    file.write_bytes(raw)
    assert refused(tmp_path, StateError) == (
        f"{file}: expected at most 60 s at 8000 Hz, 1 channel of 2 bytes, got 1073741824 samples "
        "at 8000 Hz, 1 channels of 2 bytes"
    )


def test_a_torn_recording_is_refused(tmp_path, recordings):
    (recordings / "7_jackson_32.wav").write_bytes(b"<!DOCTYPE html>")
    assert refused(tmp_path, StateError) == (
        f"{recordings}/7_jackson_32.wav: cannot be read: file does not start with RIFF id; "
        "fetch the file again"
    )


def test_a_recording_that_ends_before_its_header_says_is_refused(tmp_path, recordings):
    file = recordings / "7_jackson_32.wav"
    record(file, range(100))
    file.write_bytes(file.read_bytes()[:-50])
    assert refused(tmp_path, StateError) == (
        f"{file}: expected 100 samples, the file ends after 75; fetch the file again"
    )


def test_a_folder_without_recordings_is_refused(tmp_path, recordings):
    assert refused(tmp_path, StateError) == (
        f"{recordings}: expected 1 to 100000 files named like 7_jackson_32.wav, got 0; "
        "is this another data set?"
    )


def test_where_the_data_may_be_got_is_said():
    with pytest.raises(ConfigError) as caught:
        spoken_digits(Place())
    assert str(caught.value) == (
        "the spoken digits data set does not ship with the project and was found nowhere; put it "
        "below a folder as fsdd_8k_1s.npz or free-spoken-digit-dataset/recordings or "
        "fsdd/recordings or recordings and name that folder with data-dir or FEDFREEZE_DATA_DIR; "
        "clone https://github.com/Jakobovski/free-spoken-digit-dataset"
    )


@pytest.mark.skipif(REAL is None, reason="FEDFREEZE_TEST_DATA names no folder with real data")
def test_the_real_set_has_six_speakers_with_every_digit_in_both_halves():
    data = load(Path(REAL))
    assert np.bincount(data.train_groups).tolist() == [450] * 6
    assert np.bincount(data.test_groups).tolist() == [50] * 6
    assert np.bincount(data.test.targets.numpy()).tolist() == [30] * 10
