"""How fast a board computes: measured once, kept, measured again when something changes."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version

import pytest

from client_app.speed import (
    FILE,
    SpeedKey,
    kept_flops_per_s,
    rate,
    speed_key,
    sustained_flops_per_s,
)
from fedfreeze.wall_clock import FakeClock
from tests.board_trees import CONTAINER_V2, PHONE, PI_4, planted

KEY = SpeedKey("cpu", "Cortex-A72", 4, None, None, ("ondemand",), 1_500_000_000, False, "2.14.1")


class Measurement:
    """Says a speed, and counts how often it was asked."""

    def __init__(self, flops_per_s=6e9):
        self.flops_per_s, self.times = flops_per_s, 0

    def __call__(self):
        self.times += 1
        return self.flops_per_s


def test_a_speed_is_measured_once(tmp_path):
    measure = Measurement()
    speeds = [sustained_flops_per_s(tmp_path / "new", KEY, measure) for _ in range(3)]
    assert (speeds, measure.times) == ([6e9, 6e9, 6e9], 1)


@pytest.mark.parametrize(
    "change",
    [
        {"device": "cuda"},
        {"processor": "Cortex-A76"},
        {"cores": 2},
        {"quota": 0.5},
        {"threads": "1"},
        {"governors": ("powersave",)},
        {"governors": ("ondemand", "powersave")},
        {"most_hz": 600_000_000},
        {"is_slowed": True},
        {"is_slowed": None},
        {"torch": "2.15.0"},
        {"allowed": 2},
    ],
    ids=str,
)
def test_another_value_of_anything_that_decides_it_is_measured_anew(tmp_path, change):
    measure = Measurement()
    for key in (KEY, replace(KEY, **change)):
        sustained_flops_per_s(tmp_path, key, measure)
    assert measure.times == 2


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": 1}',
        "[" * 100_000,
        "\udcff",
    ],
    ids=["empty", "torn", "array", "null", "keyless", "deep", "no text"],
)
def test_a_damaged_file_counts_as_none(tmp_path, content):
    (tmp_path / FILE).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert kept_flops_per_s(tmp_path, KEY) is None
    assert sustained_flops_per_s(tmp_path, KEY, Measurement()) == 6e9
    assert kept_flops_per_s(tmp_path, KEY) == 6e9


@pytest.mark.parametrize("value", ["0", "-1", "NaN", "Infinity", '"x"', "null", "9" * 400])
def test_a_kept_speed_that_is_no_speed_counts_as_none(tmp_path, value):
    sustained_flops_per_s(tmp_path, KEY, Measurement())
    document = json.loads((tmp_path / FILE).read_text())
    text = json.dumps({**document, "flops_per_s": "HERE"}).replace('"HERE"', value)
    (tmp_path / FILE).write_text(text)
    assert kept_flops_per_s(tmp_path, KEY) is None


def test_a_folder_that_cannot_be_written_only_costs_another_measurement(tmp_path):
    (tmp_path / "file").write_text("")
    measure = Measurement()
    speeds = [sustained_flops_per_s(tmp_path / "file", KEY, measure) for _ in range(2)]
    assert (speeds, measure.times) == ([6e9, 6e9], 2)


def test_nothing_but_the_file_is_left_behind(tmp_path):
    sustained_flops_per_s(tmp_path, KEY, Measurement())
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_the_key_is_what_the_kernel_says_now(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    pi = speed_key(planted(tmp_path / "pi", PI_4), "cpu")
    assert pi == SpeedKey(
        *("cpu", "Cortex-A72", 4, None, "2", ("ondemand",), 1_500_000_000, True, version("torch"))
    )
    monkeypatch.delenv("OMP_NUM_THREADS")
    box = speed_key(planted(tmp_path / "box", CONTAINER_V2), "cuda")
    assert (box.device, box.quota, box.threads, box.is_slowed) == ("cuda", 0.5, None, None)


def test_a_phone_that_cools_down_is_measured_again(tmp_path):
    hot = speed_key(planted(tmp_path / "hot", PHONE), "cpu")
    state = "/sys/class/thermal/cooling_device0/cur_state"
    cool = speed_key(planted(tmp_path / "cool", {**PHONE, state: "0"}), "cpu")
    assert (hot.is_slowed, cool.is_slowed) == (True, False)


class Steps:
    """A workload whose runs take the given seconds, the last for ever after."""

    flops = 100.0

    def __init__(self, clock, *seconds):
        self.clock, self.seconds, self.runs = clock, list(seconds), 0

    def run(self):
        self.runs += 1
        self.clock.sleep(self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0])


def test_a_rate_is_the_operations_over_the_median_time_after_warming_up():
    clock = FakeClock()
    # 5 s of warming up are not seen; then 1, 1, 4, 1, 1, 1, 1 s fill 10 s: the median is 1 s.
    steps = Steps(clock, 5.0, 1.0, 1.0, 4.0, 1.0)
    assert rate(steps, clock, warm_up_s=3.0, measured_s=10.0) == 100.0
    assert steps.runs == 8


def test_a_board_that_is_slower_than_the_time_allows_still_runs_three_times():
    clock = FakeClock()
    steps = Steps(clock, 50.0)
    assert rate(steps, clock, warm_up_s=1.0, measured_s=1.0) == 2.0
    assert steps.runs == 4


def test_a_clock_that_does_not_see_a_run_does_not_divide_by_zero():
    clock = FakeClock()
    assert rate(Steps(clock, 0.0), clock, warm_up_s=0.0, measured_s=0.0) > 1e9


def test_what_is_kept_is_read_without_torch(tmp_path):
    sustained_flops_per_s(tmp_path, KEY, Measurement())
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from client_app.machine import ThisMachine\n"
        "from client_app.speed import SpeedKey, kept_flops_per_s\n"
        f"print(kept_flops_per_s(Path({str(tmp_path)!r}), {KEY!r}))\n"
        f"machine = ThisMachine(Path({str(tmp_path)!r}), 'cpu')\n"
        "machine.memory_bytes(), machine.link()\n"
        "assert 'torch' not in sys.modules, 'cheap answers must not import torch'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "6000000000.0\n", "")
