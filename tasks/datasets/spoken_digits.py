"""Free Spoken Digits: six people say zero to nine fifty times each, at 8 kHz (Jackson et al.).

From https://github.com/Jakobovski/free-spoken-digit-dataset, CC BY-SA 4.0. Its own division is
kept: recordings 0 to 4 of each person and digit are the test half, 5 to 49 the training half. So
every speaker is in both, and the score is that for voices it knows.
"""

from __future__ import annotations

import re
import wave
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fedfreeze.errors import StateError
from tasks.dataset import Dataset, Examples
from tasks.datasets.npz import Column, read_npz
from tasks.datasets.reading import reading
from tasks.sources import Place, missing

LABELS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
RATE = SAMPLES = 8000  # one second; longer recordings are cut, shorter ones end in silence
TEST_RECORDINGS = 5

_FILE = "fsdd_8k_1s.npz"
_FOLDERS = ("free-spoken-digit-dataset/recordings", "fsdd/recordings", "recordings")
_NAME = re.compile(r"([0-9])_([a-z]+)_([0-9]{1,9})\.wav")
_MOST_RECORDINGS = 100_000
# Of the longest recording that is opened; FSDD's longest lasts 2.3 s.
_MOST_SECONDS = 60

Sounds = NDArray[np.int16]
Numbers = NDArray[np.int64]


def spoken_digits(place: Place) -> Dataset:
    """Recordings from a folder, as one archive or in the original layout of ``.wav`` files.

    Inputs are ``int16[n, 8000]``, targets ``int64[n]`` below 10, groups speakers.

    Raises:
        ConfigError: there is no such folder.
        StateError: a file is torn or not what it should be.
    """
    candidates = [_FILE, *_FOLDERS]
    path = place.find("spoken digits", candidates)
    if path is None:
        raise missing(
            "the spoken digits data set",
            candidates,
            "clone https://github.com/Jakobovski/free-spoken-digit-dataset",
        )
    sounds, digits, speakers, index = _archive(path) if path.is_file() else _recordings(path)
    tested = index < TEST_RECORDINGS
    owners = np.unique(speakers, return_inverse=True)[1]

    def half(chosen: NDArray[np.bool_]) -> Examples:
        return Examples(torch.from_numpy(sounds[chosen]), torch.from_numpy(digits[chosen]))

    return Dataset(
        train=half(~tested),
        test=half(tested),
        source=f"{path} ({len(sounds)} recordings)",
        group="speaker",
        train_groups=owners[~tested],
        test_groups=owners[tested],
    )


def _archive(path: Path) -> tuple[Sounds, Numbers, NDArray[np.uint8], NDArray[np.uint8]]:
    byte = Column("uint8")
    columns = {"x": Column("int16", (SAMPLES,)), "y": byte, "speaker": byte, "index": byte}
    arrays = read_npz(path, columns, _MOST_RECORDINGS)
    if arrays["y"].max(initial=0) >= len(LABELS):
        raise StateError(
            f"{path}: expected digits 0 to {len(LABELS) - 1}, got {arrays['y'].max()}; "
            "is this another data set?"
        )
    return arrays["x"], arrays["y"].astype(np.int64), arrays["speaker"], arrays["index"]


def _recordings(folder: Path) -> tuple[Sounds, Numbers, NDArray[np.str_], Numbers]:
    """All ``{digit}_{speaker}_{index}.wav`` in the order of their names."""
    found = [
        (path, match)
        for path in sorted(folder.iterdir())
        if (match := _NAME.fullmatch(path.name)) is not None
    ]
    if not 0 < len(found) <= _MOST_RECORDINGS:
        raise StateError(
            f"{folder}: expected 1 to {_MOST_RECORDINGS} files named like 7_jackson_32.wav, got "
            f"{len(found)}; is this another data set?"
        )
    return (
        np.stack([_samples(path) for path, _ in found]),
        np.array([int(match[1]) for _, match in found], np.int64),
        np.array([match[2] for _, match in found]),
        np.array([int(match[3]) for _, match in found], np.int64),
    )


def _samples(path: Path) -> Sounds:
    """``int16[8000]``: the first second, silence after its end."""
    with reading(path), wave.open(str(path), "rb") as file:
        came = (file.getframerate(), file.getnchannels(), file.getsampwidth())
        count = file.getnframes()
        if came != (RATE, 1, 2) or count > _MOST_SECONDS * RATE:
            raise StateError(
                f"{path}: expected at most {_MOST_SECONDS} s at {RATE} Hz, 1 channel of 2 "
                f"bytes, got {count} samples at {came[0]} Hz, {came[1]} channels "
                f"of {came[2]} bytes"
            )
        raw = file.readframes(SAMPLES)
    # A file that ends early would else pass for a short recording.
    if len(raw) != 2 * min(count, SAMPLES):
        raise StateError(
            f"{path}: expected {count} samples, the file ends after {len(raw) // 2}; "
            "fetch the file again"
        )
    sound = np.frombuffer(raw, "<i2").astype(np.int16)
    return np.pad(sound, (0, SAMPLES - len(sound)))
