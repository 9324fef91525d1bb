"""Nothing that decides anything reads the test half."""

from __future__ import annotations

import pytest

from strategies.schema import load, presets
from tests.conftest import records

# What measures the test half, and what measures time here.
REPORTED = ("test_", "client_", "wall_s", "train_s")


def without_reports(value):
    """The record without figures that only report."""
    if isinstance(value, dict):
        return {
            key: without_reports(member)
            for key, member in value.items()
            if not key.startswith(REPORTED)
        }
    if isinstance(value, list):
        return [without_reports(member) for member in value]
    return value


# The tiny task takes no model of its own, so that a preset which names one cannot have it.
PRESETS = [name for name in presets() if load(name).model.name is None]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_run_with_noise_for_its_test_half_publishes_the_same_model_and_decides_alike(
    small_run, preset
):
    wanted = ["rounds=4", "compression.compression-ratio=2"]
    if preset.startswith("fedfreeze"):
        wanted += ["freeze.warm-up-rounds=1", "freeze.loss-lag=1"]
    clear = small_run("task=tests.tiny_task", *wanted, preset=preset, nodes=2, name="clear")
    noisy = small_run("task=tests.tiny_half", *wanted, preset=preset, nodes=2, name="noisy")
    clear.play()
    noisy.play()

    assert clear.folder.model.read_bytes() == noisy.folder.model.read_bytes()
    decisions = [without_reports(records(run.folder, "decisions")) for run in (clear, noisy)]
    assert decisions[0] == decisions[1]
    rounds = [without_reports(records(run.folder)) for run in (clear, noisy)]
    assert rounds[0] == rounds[1]
    # The two did meet different test halves, or all this says nothing.
    of_clear, of_noisy = (records(run.folder) for run in (clear, noisy))
    assert all(c["test_loss"] != n["test_loss"] for c, n in zip(of_clear, of_noisy, strict=True))
