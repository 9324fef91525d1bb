"""Sensors of power on trees of files."""

import pytest

from device_profiles.energy.choice import power_sensor
from device_profiles.energy.sensors import ina219, ina3221, pmic, pmic_power_w
from tests.board_trees import JETSON_ORIN, LAPTOP, PI_4, planted

HWMON = "/sys/class/hwmon/hwmon1"
PMIC = ("vcgencmd", "pmic_read_adc")

# As a Raspberry Pi 5 prints it, shortened: 3.7 V x 0.1 A + 1.1 V x 2 A = 2.57 W. The 5 V input has
# volts only.
ANSWER = """\
   3V7_WL_SW_A current(0)=0.10000000A
   VDD_CORE_A current(7)=2.00000000A
   3V7_WL_SW_V volt(8)=3.70000000V
   VDD_CORE_V volt(15)=1.10000000V
     EXT5V_V volt(24)=5.14730400V
      BATT_V volt(25)=0.00000000V
"""

# JetPack 4: milliwatts of an iio device.
NANO_FOLDER = "/sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0"
NANO = {
    f"{NANO_FOLDER}/rail_name_0": "POM_5V_IN\n",
    f"{NANO_FOLDER}/in_power0_input": "3450\n",
    f"{NANO_FOLDER}/rail_name_1": "POM_5V_GPU\n",
    f"{NANO_FOLDER}/in_power1_input": "900\n",
}


def test_a_jetson_is_read_where_all_that_it_draws_comes_in(tmp_path):
    sensor = ina3221(planted(tmp_path, JETSON_ORIN))
    assert (sensor.source, sensor.scope) == ("ina3221", "board")
    assert sensor.power_w() == pytest.approx(5.0)  # 5 V x 1 A


def test_without_such_a_channel_all_channels_are_summed_as_rails(tmp_path):
    sensor = ina3221(planted(tmp_path, {**JETSON_ORIN, f"{HWMON}/in1_label": "GPU\n"}))
    assert sensor.scope == "rails"
    assert sensor.power_w() == pytest.approx(5.0 + 2.0)


def test_a_channel_that_does_not_answer_makes_the_sum_unknown(tmp_path):
    system = planted(tmp_path, {**JETSON_ORIN, f"{HWMON}/in1_label": "GPU\n"})
    sensor = ina3221(system)
    system.path(f"{HWMON}/curr2_input").unlink()
    assert sensor.power_w() is None


def test_an_old_jetson_gives_milliwatts(tmp_path):
    sensor = ina3221(planted(tmp_path, NANO))
    assert (sensor.source, sensor.scope, sensor.power_w()) == ("ina3221", "board", 3.45)


def test_an_add_on_gives_microwatts(tmp_path):
    files = {f"{HWMON}/name": "ina219\n", f"{HWMON}/power1_input": "2750000\n"}
    sensor = ina219(planted(tmp_path, files))
    assert (sensor.source, sensor.scope, sensor.power_w()) == ("ina219", "board", 2.75)


def test_a_pi_5_sums_the_rails_of_which_it_knows_volts_and_amperes(tmp_path):
    sensor = pmic(planted(tmp_path, {}, {PMIC: ANSWER}))
    assert (sensor.source, sensor.scope) == ("pmic", "rails")
    assert sensor.power_w() == pytest.approx(2.57)


@pytest.mark.parametrize(
    "answer",
    ["", "Command not registered", "EXT5V_V volt(24)=5.1V", "A_A current(1)=1.2.3A A_V volt(2)=1V"],
)
def test_an_answer_without_a_whole_rail_is_no_power(answer):
    assert pmic_power_w(answer) is None


@pytest.mark.parametrize("files", [PI_4, LAPTOP, {}], ids=["Pi 4", "laptop", "nothing"])
def test_a_board_without_a_sensor_has_none(tmp_path, files):
    system = planted(tmp_path, files)
    assert (ina3221(system), ina219(system), pmic(system), power_sensor(system)) == (None,) * 4


def test_an_add_on_is_preferred_since_somebody_put_it_there(tmp_path):
    add_on = {"/sys/class/hwmon/hwmon7/name": "ina219"}
    system = planted(tmp_path, {**JETSON_ORIN, **add_on}, {PMIC: ANSWER})
    assert power_sensor(system).source == "ina219"
