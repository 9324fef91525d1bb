"""Physiotherapy exercises felt by a smartwatch, by person (Burns et al., 2018).

Ten people did seven shoulder exercises with each arm, a watch on the wrist: 140 recordings of
acceleration and rotation at 50 Hz, in windows of 2 s of which each shares 1 s with the next one.
From D. M. Burns et al., "Shoulder physiotherapy exercise recognition: machine learning the
inertial signals from a smartwatch", Physiological Measurement 39 (2018) 075007; published with
the package seglearn under BSD-3.

The copy that ships with the project holds every recording at half the rate. Windows that are read
from a folder are decimated in the same way, so both give the same examples.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fedfreeze.errors import StateError
from tasks.dataset import Dataset, Examples
from tasks.datasets.embedded import embedded
from tasks.datasets.npz import Column, read_npz
from tasks.sources import Place

LABELS = (
    "pendulum",
    "abduction",
    "forward elevation",
    "internal rotation",
    "external rotation",
    "trapezius extension",
    "upright row",
)
CHANNELS = ("ax", "ay", "az", "wx", "wy", "wz")
# What one count means: acceleration in g, rotation in rad/s.
STEPS = (1 / 256,) * 3 + (1 / 128,) * 3
# Samples of a window after decimation (25 Hz), and from the start of one window to the next.
LENGTH, STRIDE = 50, 25
# Of each recording's windows; the later ones are the test half.
TRAIN_SHARE = 0.75

EMBEDDED = "watch_activity.json"
FILE = "activity/watch_windows_100x6.npz"
_MOST_WINDOWS = 100_000

Windows = NDArray[np.int16]
Numbers = NDArray[np.int64]


def watch_activity(place: Place) -> Dataset:
    """Windows from a folder's file, or the copy that ships with the project.

    Inputs are ``int16[n, 50, 6]`` in :data:`STEPS`, targets ``int64[n]`` below 7, groups people.

    The test half is the last quarter of every recording, without the window at the seam, which
    shares a second with the training half. So every person and arm is in both halves, and the score
    says how well later repetitions of people it knows are told apart, not those of new people.

    Raises:
        ConfigError: a demanded folder or the embedded file lacks the data.
        StateError: a file is torn or not what it should be.
    """
    path = place.find("smartwatch activity", [FILE])
    if path is None:
        source, arrays = embedded(EMBEDDED, instead=FILE)
        windows, classes, people = _from_signals(
            np.cumsum(arrays["signal_differences"], axis=1, dtype=np.int16).T, arrays["recordings"]
        )
    else:
        columns = {"x": Column("float32", (100, 6)), "y": Column("uint8"), "subject": Column("u1")}
        arrays = read_npz(path, columns, _MOST_WINDOWS)
        classes, people = arrays["y"], arrays["subject"]
        _check(path, arrays["x"], classes, people)
        windows = decimated(arrays["x"])
        source = f"{path} ({len(windows)} windows)"
    return _dataset(source, windows, classes.astype(np.int64), people.astype(np.int64))


def decimated(readings: NDArray[np.float32]) -> Windows:
    """Half the rate (means of neighbours), in whole steps: ``[..., 2 t, 6]`` to ``[..., t, 6]``.

    >>> decimated(np.array([[0.5, 0, 0, 0, 0, 1], [1.5, 0, 0, 0, 0, 3]], np.float32))
    array([[256,   0,   0,   0,   0, 256]], dtype=int16)
    """
    *batch, samples, channels = readings.shape
    pairs = readings.reshape(*batch, samples // 2, 2, channels).mean(-2, dtype=np.float64)
    limits = np.iinfo(np.int16)
    counts: Windows = np.clip(np.rint(pairs / STEPS), limits.min, limits.max).astype(np.int16)
    return counts


def recordings(classes: NDArray[Any], people: NDArray[Any]) -> list[slice]:
    """Runs of windows of one person and class, in the order of the file.

    >>> recordings(np.array([0, 0, 1, 1]), np.array([3, 3, 3, 4]))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    changes = np.flatnonzero((np.diff(classes) != 0) | (np.diff(people) != 0)) + 1
    return [slice(start, stop) for start, stop in pairwise([0, *changes.tolist(), len(classes)])]


def _from_signals(
    signal: Windows, table: NDArray[np.int16]
) -> tuple[Windows, NDArray[np.int16], NDArray[np.int16]]:
    """Windows, classes and people of recordings laid end to end: ``[samples, 6]``.

    ``table`` has a row for each recording: person, class, samples.
    """
    ends = np.cumsum(table[:, 2], dtype=np.int64)
    pieces = np.split(signal, ends[:-1])
    cut = [sliding_window_view(piece, LENGTH, axis=0)[::STRIDE].swapaxes(1, 2) for piece in pieces]
    counts = [len(windows) for windows in cut]
    return np.concatenate(cut), np.repeat(table[:, 1], counts), np.repeat(table[:, 0], counts)


def _check(
    path: Path, readings: NDArray[np.float32], classes: NDArray[Any], people: NDArray[Any]
) -> None:
    if classes.max(initial=0) >= len(LABELS):
        raise StateError(
            f"{path}: expected classes 0 to {len(LABELS) - 1}, got {classes.max()}; "
            "is this another data set?"
        )
    if not np.isfinite(readings).all():
        raise StateError(f"{path}: expected finite readings, got nan or inf; fetch the file again")
    for run in recordings(classes, people):
        if not np.array_equal(readings[run][:-1, LENGTH:], readings[run][1:, :LENGTH]):
            raise StateError(
                f"{path}: expected each window of a recording to begin with the second half of the "
                f"one before, windows {run.start} to {run.stop - 1} do not; the halves for "
                "training and test follow their order"
            )


def _dataset(source: str, windows: Windows, classes: Numbers, people: Numbers) -> Dataset:
    train, test = [], []
    for run in recordings(classes, people):
        seam = run.start + int(TRAIN_SHARE * (run.stop - run.start))
        train.append(np.arange(run.start, seam))
        test.append(np.arange(seam + 1, run.stop))

    def half(positions: Numbers) -> Examples:
        return Examples(torch.from_numpy(windows[positions]), torch.from_numpy(classes[positions]))

    trained, tested = np.concatenate(train), np.concatenate(test)
    owners = np.unique(people, return_inverse=True)[1]
    return Dataset(
        train=half(trained),
        test=half(tested),
        source=source,
        group="person",
        train_groups=owners[trained],
        test_groups=owners[tested],
    )
