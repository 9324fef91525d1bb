"""Energy meters: sampled sensors, counters and the model, on a clock that the test moves."""

import threading

import pytest

from device_profiles.board import load_board
from device_profiles.energy.choice import energy_meter
from device_profiles.energy.modelled import ModelMeter
from device_profiles.energy.rapl import RaplMeter, is_denied, packages
from device_profiles.energy.reading import EnergyReading
from device_profiles.energy.sampled import SampledMeter
from device_profiles.energy.sensors import PowerSensor
from device_profiles.energy.ticker import FakeTicker, ThreadTicker
from fedfreeze.wall_clock import FakeClock
from tests.board_trees import JETSON_ORIN, LAPTOP, PI_4, Locked, planted


def sampled(powers_w, waits_s, interval_s=1.0):
    """What a meter says when the sensor gives these powers with these times between."""
    clock, ticker, left = FakeClock(), FakeTicker(), list(powers_w)
    sensor = PowerSensor("ina219", "board", interval_s, lambda: left.pop(0))
    meter = SampledMeter(sensor, clock=clock, ticker=ticker)
    meter.start()
    for wait_s in waits_s[:-1]:
        clock.sleep(wait_s)
        ticker.tick()
    clock.sleep(waits_s[-1])
    reading = meter.stop()
    assert not ticker.runs
    assert left == []
    return reading


def test_samples_are_integrated_by_trapezoids():
    # 2 -> 4 W in 1 s, 4 -> 4 W in 2 s, 4 -> 0 W in 1 s: 3 + 8 + 2 J.
    assert sampled([2.0, 4.0, 4.0, 0.0], [1.0, 2.0, 1.0]) == EnergyReading(
        energy_j=13.0,
        source="ina219",
        scope="board",
        samples=4,
        sample_rate_hz=0.75,
        gaps_s=0.0,
    )


def test_a_sensor_that_fails_for_a_while_leaves_a_gap_that_is_interpolated():
    # 10 W all the time; readings after 1 s and 6 s, in between nothing.
    reading = sampled([10.0, 10.0, None, None, None, None, 10.0], [1.0] * 6)
    assert (reading.energy_j, reading.samples, reading.gaps_s) == (60.0, 3, 5.0)


@pytest.mark.parametrize(
    "powers_w",
    [[10.0, 10.0, None, None, None, None, None], [None, None, None, None, None, 10.0, 10.0]],
    ids=["falls silent", "begins late"],
)
def test_what_a_sensor_misses_at_an_end_is_a_gap_with_the_power_of_the_nearest_sample(powers_w):
    # 10 W over 6 s, of which 5 are not seen.
    reading = sampled(powers_w, [1.0] * 6)
    assert (reading.energy_j, reading.samples, reading.gaps_s) == (60.0, 2, 5.0)


def test_a_sensor_that_never_answers_has_no_energy():
    reading = sampled([None] * 4, [1.0] * 3)
    assert (reading.energy_j, reading.samples, reading.sample_rate_hz) == (None, 0, None)
    assert sampled([None] * 5, [1.0] * 4).gaps_s == 4.0


def test_a_meter_starts_from_nothing_each_time():
    clock, ticker = FakeClock(), FakeTicker()
    sensor = PowerSensor("ina219", "board", 1.0, lambda: 3.0)
    meter = SampledMeter(sensor, clock=clock, ticker=ticker)
    energies = []
    for _ in range(2):
        meter.start()
        clock.sleep(2.0)
        energies.append(meter.stop().energy_j)
        clock.sleep(100.0)
    assert energies == [6.0, 6.0]


def test_a_thread_reads_until_it_is_stopped():
    enough, ticks = threading.Event(), []

    def tick():
        ticks.append(threading.current_thread().name)
        if len(ticks) == 3:
            enough.set()

    ticker = ThreadTicker()
    ticker.start(tick, interval_s=0.001)
    assert enough.wait(timeout=60)
    ticker.stop()
    assert set(ticks) == {"energy"}
    assert "energy" not in {thread.name for thread in threading.enumerate()}


def rapl_of(root, counters_uj, most_uj="1000000000"):
    """A machine with a package for each counter, and a function that sets them."""
    names = [f"/sys/class/powercap/intel-rapl:{n}" for n in range(len(counters_uj))]
    files = {}
    for n, folder in enumerate(names):
        files[f"{folder}/name"] = f"package-{n}\n"
        files[f"{folder}/max_energy_range_uj"] = most_uj
    system = planted(root, files)

    def put(*values):
        for folder, value in zip(names, values, strict=True):
            system.path(f"{folder}/energy_uj").write_text(str(value))

    put(*counters_uj)
    return system, put


def test_counters_of_all_packages_are_summed(tmp_path):
    system, put = rapl_of(tmp_path, [1_000_000, 5_000_000])
    clock, ticker = FakeClock(), FakeTicker()
    meter = RaplMeter(system, clock=clock, ticker=ticker)
    meter.start()
    clock.sleep(10.0)
    put(4_000_000, 5_500_000)
    assert meter.stop() == EnergyReading(3.5, "rapl", "processor", 2, 0.1, 0.0)


def test_a_counter_that_starts_anew_is_followed_each_time(tmp_path):
    # Of 1,000 J: 900 -> 100 is 200 J, 100 -> 50 is 950 J, 50 -> 60 is 10 J.
    system, put = rapl_of(tmp_path, [900_000_000])
    clock, ticker = FakeClock(), FakeTicker()
    meter = RaplMeter(system, clock=clock, ticker=ticker)
    meter.start()
    for value in (100_000_000, 50_000_000):
        clock.sleep(60.0)
        put(value)
        ticker.tick()
    clock.sleep(60.0)
    put(60_000_000)
    assert meter.stop().energy_j == pytest.approx(1160.0)


def test_a_counter_with_an_unknown_end_that_starts_anew_is_unknown(tmp_path):
    system, put = rapl_of(tmp_path, [900], most_uj="")
    meter = RaplMeter(system, clock=FakeClock(), ticker=FakeTicker())
    meter.start()
    put(100)
    assert meter.stop().energy_j is None


def test_a_counter_that_vanishes_makes_the_energy_unknown(tmp_path):
    system, put = rapl_of(tmp_path, [900, 100])
    meter = RaplMeter(system, clock=FakeClock(), ticker=FakeTicker())
    meter.start()
    put(950, "gone")
    assert meter.stop().energy_j is None


def test_parts_of_a_package_are_not_counted_twice(tmp_path):
    assert packages(planted(tmp_path, LAPTOP)) == ["/sys/class/powercap/intel-rapl:0"]


def test_counters_that_this_user_may_not_read_are_told_from_none(tmp_path):
    system = planted(tmp_path, LAPTOP)
    assert not is_denied(system)
    system = Locked(system, "energy_uj")
    assert is_denied(system)
    assert isinstance(energy_meter(system, load_board("laptop")), ModelMeter)
    assert energy_meter(system, None) is None


def test_the_model_is_a_boards_power_times_the_seconds():
    clock = FakeClock()
    meter = ModelMeter(load_board("rpi-4b-4gb"), clock=clock)
    meter.start()
    clock.sleep(50.0)
    expected_j = load_board("rpi-4b-4gb").power.compute.value * 50.0
    assert meter.stop() == EnergyReading(expected_j, "model", "board", 0, None, 0.0)
    assert meter.stop().energy_j is None


@pytest.mark.parametrize(
    ("files", "board", "source"),
    [
        (JETSON_ORIN, "jetson-orin-nano", "ina3221"),
        (LAPTOP, "laptop", "rapl"),
        (PI_4, "rpi-4b-4gb", "model"),
    ],
)
def test_each_board_has_its_best_meter(tmp_path, files, board, source):
    meter = energy_meter(
        planted(tmp_path, files), load_board(board), clock=FakeClock(), ticker=FakeTicker()
    )
    meter.start()
    assert meter.stop().source == source


def test_a_board_of_which_nothing_is_known_has_no_meter(tmp_path):
    assert energy_meter(planted(tmp_path, PI_4), None) is None
