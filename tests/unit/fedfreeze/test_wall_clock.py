"""Clocks: the real one goes forward, the fake one only when somebody sleeps."""

import pytest

from fedfreeze.wall_clock import FakeClock, SystemClock


@pytest.mark.parametrize("clock", [SystemClock(), FakeClock()])
def test_a_clock_never_goes_back_and_sleeping_passes_time(clock):
    begin = clock.now()
    clock.sleep(0.01)
    middle = clock.now()
    clock.sleep(0)
    assert begin + 0.01 <= middle <= clock.now()


def test_no_time_passes_on_a_fake_clock_by_itself():
    clock = FakeClock()
    assert clock.now() == clock.now() == 0.0
    clock.sleep(3)
    clock.sleep(0.5)
    assert clock.now() == 3.5
