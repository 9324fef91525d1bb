"""The battery."""

import pytest

from client_app.probes.battery import BatteryCharge, battery_now
from tests.board_trees import LAPTOP, PHONE, PI_4, planted


def test_a_phones_charge_and_voltage_are_its_energy(tmp_path):
    # 1 Ah at 4 V are 4 Wh, or 14,400 J.
    expected = BatteryCharge(share=0.15, energy_j=pytest.approx(14_400), is_discharging=True)
    assert battery_now(planted(tmp_path, PHONE)) == expected


def test_a_laptops_battery_is_not_that_of_its_mouse(tmp_path):
    # 50 Wh are 180 kJ.
    expected = BatteryCharge(share=0.8, energy_j=pytest.approx(180e3), is_discharging=False)
    assert battery_now(planted(tmp_path, LAPTOP)) == expected


def test_a_board_without_one_has_none(tmp_path):
    assert battery_now(planted(tmp_path, PI_4)) is None


def test_an_empty_slot_is_no_battery(tmp_path):
    slot = {
        "/sys/class/power_supply/b/type": "Battery",
        "/sys/class/power_supply/b/present": "0",
        "/sys/class/power_supply/b/capacity": "0",
    }
    assert battery_now(planted(tmp_path, slot)) is None
    full = {"/sys/class/power_supply/b/present": "1", "/sys/class/power_supply/b/capacity": "100"}
    assert battery_now(planted(tmp_path, full)).share == 1.0


def test_what_a_battery_does_not_say_is_none(tmp_path):
    silent = {
        "/sys/class/power_supply/b/type": "Battery",
        "/sys/class/power_supply/b/capacity": "255",
        "/sys/class/power_supply/b/status": "Unknown",
    }
    assert battery_now(planted(tmp_path, silent)) == BatteryCharge(None, None, None)
