"""Windows of a smartwatch, from a folder and as embedded."""

import importlib.util
import json
import os
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.embedded import unpack
from tasks.datasets.watch_activity import (
    LABELS,
    STEPS,
    _from_signals,
    decimated,
    watch_activity,
)
from tasks.sources import Place

SHIPPED = resources.files("tasks") / "data"
REAL = os.environ.get("FEDFREEZE_TEST_DATA")


def windows(count, seed=0):
    """Windows of a made-up recording, each of which begins with the second half of the last."""
    signal = np.random.default_rng(seed).normal(size=(50 * (count + 1), 6)).astype(np.float32)
    return np.stack([signal[start : start + 100] for start in range(0, 50 * count, 50)])


def write(folder: Path, **changes):
    """A file in the published format: persons 3 and 7, three recordings of 8, 4 and 6 windows."""
    counts = (8, 4, 6)
    arrays = {
        "x": np.concatenate([windows(count, seed) for seed, count in enumerate(counts)]),
        "y": np.repeat(np.array([0, 0, 6], np.uint8), counts),
        "subject": np.repeat(np.array([3, 7, 7], np.uint8), counts),
        **changes,
    }
    path = folder / "activity" / "watch_windows_100x6.npz"
    path.parent.mkdir()
    np.savez_compressed(path, **arrays)
    return path, arrays


def refused(folder, error):
    with pytest.raises(error) as caught:
        watch_activity(Place(folder, demanded=True))
    return str(caught.value)


def test_pairs_of_samples_are_averaged_and_counted_in_steps():
    readings = np.array([[1, 0, 0, 2, 0, 0], [2, 0, 0, 3, 0, 0]], np.float32)
    assert decimated(readings).tolist() == [[round(1.5 * 256), 0, 0, round(2.5 * 128), 0, 0]]
    assert STEPS == (1 / 256,) * 3 + (1 / 128,) * 3


def test_a_reading_out_of_range_is_the_largest_count():
    assert decimated(np.full((2, 6), 1e6, np.float32)).tolist() == [[32767] * 6]


def test_the_last_quarter_of_each_recording_is_the_test_half_less_the_window_at_the_seam(tmp_path):
    path, arrays = write(tmp_path)
    data = watch_activity(Place(tmp_path, demanded=True))
    trained, tested = [0, 1, 2, 3, 4, 5, 8, 9, 10, 12, 13, 14, 15], [7, 17]
    expected = decimated(arrays["x"])
    assert np.array_equal(data.train.inputs.numpy(), expected[trained])
    assert np.array_equal(data.test.inputs.numpy(), expected[tested])
    assert data.train.targets.tolist() == [0] * 9 + [6] * 4
    assert data.train_groups.tolist() == [0] * 6 + [1] * 7
    assert data.test_groups.tolist() == [0, 1]
    assert (data.group, data.source) == ("person", f"{path} (18 windows)")


def test_no_sample_is_in_both_halves(tmp_path):
    # Every sample of this file is a number of its own.
    signal = np.arange(50 * 13 * 6, dtype=np.float32).reshape(-1, 6) / 128
    x = np.stack([signal[start : start + 100] for start in range(0, 50 * 12, 50)])
    one = np.ones(12, np.uint8)
    write(tmp_path, x=x, y=one, subject=one)
    data = watch_activity(Place(tmp_path, demanded=True))
    train = set(data.train.inputs[..., 5].flatten().tolist())
    assert train.isdisjoint(data.test.inputs[..., 5].flatten().tolist())
    assert len(data.test) == 2


def test_a_demanded_folder_without_the_file_is_an_error(tmp_path):
    assert refused(tmp_path, ConfigError) == (
        f"data-dir: expected smartwatch activity in {tmp_path} as "
        "activity/watch_windows_100x6.npz, found none of these"
    )


def test_a_class_that_is_none_is_refused(tmp_path):
    path, _ = write(tmp_path, y=np.repeat(np.array([0, 7, 6], np.uint8), (8, 4, 6)))
    assert refused(tmp_path, StateError) == (
        f"{path}: expected classes 0 to 6, got 7; is this another data set?"
    )


def test_readings_that_are_not_finite_are_refused(tmp_path):
    x = np.zeros((18, 100, 6), np.float32)
    x[3, 4, 5] = np.nan
    path, _ = write(tmp_path, x=x)
    assert refused(tmp_path, StateError) == (
        f"{path}: expected finite readings, got nan or inf; fetch the file again"
    )


def test_shuffled_windows_are_refused_as_their_order_divides_them(tmp_path):
    x = np.concatenate([windows(8), windows(4, 1)[::-1], windows(6, 2)])
    path, _ = write(tmp_path, x=x)
    assert refused(tmp_path, StateError) == (
        f"{path}: expected each window of a recording to begin with the second half of the one "
        "before, windows 8 to 11 do not; the halves for training and test follow their order"
    )


def test_the_embedded_copy_holds_ten_people_with_seven_exercises_in_both_halves():
    data = watch_activity(Place())
    assert data.source == "Watch activity, embedded (140 recordings of 10 people, at 25 Hz)"
    assert data.train.inputs.dtype == torch.int16
    assert len(LABELS) == 7
    # 4,677 windows, of which one at the seam of each of 140 recordings is in neither half.
    assert len(data.train) + len(data.test) == 4677 - 140
    for examples, groups in ((data.train, data.train_groups), (data.test, data.test_groups)):
        assert examples.inputs.shape[1:] == (50, 6)
        pairs = {*zip(groups.tolist(), examples.targets.tolist(), strict=True)}
        assert len(pairs) == 10 * 7


def test_the_embedded_copy_feels_the_weight_of_the_earth():
    inputs = watch_activity(Place()).train.inputs[..., :3].double() / 256
    assert 0.9 < float(inputs.mean(1).norm(dim=1).median()) < 1.1


def test_the_embedded_copy_carries_its_source_and_licence():
    document = json.loads((SHIPPED / "watch_activity.json").read_text("ascii"))
    assert "dmbee/seglearn" in document["source"]
    assert document["licence"].startswith("BSD-3-Clause")
    licence = (SHIPPED / "watch_activity_LICENSE.md").read_text("utf-8")
    assert "Copyright (c) 2018, David M. Burns" in licence
    assert "Redistributions in binary form must reproduce" in licence
    assert 'THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS"' in licence


@pytest.mark.skipif(REAL is None, reason="FEDFREEZE_TEST_DATA names no folder with real data")
def test_the_embedded_copy_is_what_the_published_windows_give():
    shipped, published = watch_activity(Place()), watch_activity(Place(Path(REAL), demanded=True))
    assert torch.equal(shipped.train.inputs, published.train.inputs)
    assert torch.equal(shipped.test.inputs, published.test.inputs)
    assert torch.equal(shipped.train.targets, published.train.targets)
    assert np.array_equal(shipped.train_groups, published.train_groups)
    assert np.array_equal(shipped.test_groups, published.test_groups)


def script():
    """The script that makes the embedded file; scripts are no package."""
    path = Path(__file__).parents[4] / "experiments" / "embed_watch_activity.py"
    spec = importlib.util.spec_from_file_location("embed_watch_activity", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_the_script_embeds_gives_the_same_windows_as_the_folder(tmp_path):
    path, arrays = write(tmp_path)
    packed = script().document(path)["arrays"]
    differences, table = (unpack(n, packed[n]) for n in ("signal_differences", "recordings"))
    found = _from_signals(np.cumsum(differences, axis=1, dtype=np.int16).T, table)
    expected = (decimated(arrays["x"]), arrays["y"], arrays["subject"])
    assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))


@pytest.mark.skipif(REAL is None, reason="FEDFREEZE_TEST_DATA names no folder with real data")
def test_the_script_makes_the_file_that_ships():
    made = script().document(Path(REAL) / "activity" / "watch_windows_100x6.npz")
    shipped = json.loads((SHIPPED / "watch_activity.json").read_text("ascii"))
    # Another version of the compressor may pack the same numbers into other text.
    for name, packed in made.pop("arrays").items():
        assert packed["sha256"] == shipped["arrays"][name]["sha256"]
    del shipped["arrays"]
    assert json.loads(json.dumps(made)) == shipped
