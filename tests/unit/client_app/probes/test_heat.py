"""Heat and throttling."""

import pytest

from client_app.probes.heat import Heat, heat_now
from tests.board_trees import JETSON_ORIN, LAPTOP, PHONE, PI_4, planted

VOLTAGE, CAPPED, THROTTLED = "under-voltage", "frequency capped", "throttled"
NO_FIRMWARE = {k: v for k, v in PI_4.items() if not k.endswith("get_throttled")}
GET_THROTTLED = ("vcgencmd", "get_throttled")


def test_a_pi_says_what_slows_it_now_and_what_did_before(tmp_path):
    assert heat_now(planted(tmp_path, PI_4)) == Heat(
        hottest_c=61.834,
        zone="cpu-thermal",
        flags=frozenset({VOLTAGE}),
        flags_before=frozenset({VOLTAGE, CAPPED}),
        cooling=None,  # its only cooling device is a fan
    )


@pytest.mark.parametrize(
    ("answer", "now", "before"),
    [
        ("throttled=0x0", set(), set()),
        ("throttled=0x50005", {VOLTAGE, THROTTLED}, {VOLTAGE, THROTTLED}),
        ("throttled=0x80008", {"soft temperature limit"}, {"soft temperature limit"}),
        ("throttled=0x20000", set(), {CAPPED}),
    ],
)
def test_without_the_kernels_file_the_command_is_asked(tmp_path, answer, now, before):
    heat = heat_now(planted(tmp_path, NO_FIRMWARE, {GET_THROTTLED: answer}))
    assert (heat.flags, heat.flags_before) == (now, before)
    assert heat.is_slowed is bool(now)


@pytest.mark.parametrize("answer", ["VCHI initialization failed", "", "throttled="])
def test_a_command_that_fails_says_nothing(tmp_path, answer):
    heat = heat_now(planted(tmp_path, NO_FIRMWARE, {GET_THROTTLED: answer}))
    assert (heat.flags, heat.flags_before, heat.is_slowed) == (None, None, None)


@pytest.mark.parametrize(("alarm", "flags"), [("0", set()), ("1", {VOLTAGE})])
def test_the_voltage_alarm_of_the_kernel_stands_in_for_the_firmware(tmp_path, alarm, flags):
    volt = "/sys/class/hwmon/hwmon2/"
    files = {**NO_FIRMWARE, f"{volt}name": "rpi_volt\n", f"{volt}in0_lcrit_alarm": alarm}
    heat = heat_now(planted(tmp_path, files))
    assert (heat.flags, heat.flags_before) == (flags, None)


def test_a_jetson_shows_its_hottest_zone_and_passes_over_sensors_that_are_off(tmp_path):
    heat = heat_now(planted(tmp_path, JETSON_ORIN))
    assert (heat.hottest_c, heat.zone) == (52.25, "gpu-thermal")
    assert (heat.flags, heat.cooling, heat.is_slowed) == (None, False, False)


def test_a_phone_is_slowed_when_the_kernel_holds_its_clock_down(tmp_path):
    assert heat_now(planted(tmp_path, PHONE)).is_slowed is True


def test_a_machine_without_sensors_says_nothing(tmp_path):
    heat = heat_now(planted(tmp_path, LAPTOP))
    assert (heat, heat.is_slowed) == (Heat(None, None, None, None, None), None)
