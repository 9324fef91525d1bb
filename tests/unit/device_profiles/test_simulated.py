"""Simulated capacity: seeded, within its spread, the same in every process."""

import os
import statistics
import subprocess
import sys

import pytest

from device_profiles.board import load_board
from device_profiles.simulated import simulated_capacity

BOARD = load_board("rpi-3b-plus-nbiot")


def capacity(**changes):
    given = {"seed": 0, "device_id": "cam-07", "round_number": 1, **changes}
    return simulated_capacity(BOARD, **given)


def test_every_value_says_that_it_is_from_the_profile():
    known = capacity().to_json().values()
    assert {value["source"] for value in known} == {"profile"}


@pytest.mark.parametrize(
    "changes", [{"seed": 1}, {"device_id": "cam-08"}, {"round_number": 2}], ids=str
)
def test_another_seed_device_or_round_gives_another_draw(changes):
    first, second = capacity().to_json(), capacity(**changes).to_json()
    assert all(first[name]["value"] != second[name]["value"] for name in first)


def test_a_device_id_and_a_seed_do_not_run_into_each_other():
    assert capacity(seed=1, device_id="2x") != capacity(seed=12, device_id="x")


def test_draws_fill_the_spread_evenly():
    # 2,000 uniform draws: the mean lies within 5 standard errors, the ends within 1 %.
    draws = [
        capacity(round_number=number).uplink_bytes_per_s.value / BOARD.uplink.value
        for number in range(2000)
    ]
    spread = BOARD.uplink.spread
    assert abs(statistics.mean(draws) - 1) < 5 * spread / 3**0.5 / 2000**0.5
    assert 1 - spread <= min(draws) < 1 - 0.99 * spread
    assert 1 + 0.99 * spread < max(draws) <= 1 + spread


def test_values_of_one_round_swing_independently():
    pairs = [
        (
            capacity(round_number=number).uplink_bytes_per_s.value / BOARD.uplink.value,
            capacity(round_number=number).downlink_bytes_per_s.value / BOARD.downlink.value,
        )
        for number in range(1000)
    ]
    # The correlation of 1,000 independent pairs has a standard deviation of 0.032.
    assert abs(statistics.correlation(*zip(*pairs, strict=True))) < 0.15


def test_another_process_draws_the_same():
    code = (
        "from device_profiles.board import load_board as b\n"
        "from device_profiles.simulated import simulated_capacity as s\n"
        "import sys\n"
        "print(s(b('rpi-3b-plus-nbiot'), seed=0, device_id='cam-07', round_number=1))\n"
        "assert 'torch' not in sys.modules, 'this room must not import torch'\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "99", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == str(capacity())
