"""The virtual clock and the length of a round."""

import math

import pytest

from device_profiles.clock import VirtualClock, round_seconds
from fedfreeze.errors import ProtocolError


def test_a_round_lasts_as_long_as_its_slowest_device():
    assert round_seconds({"a": 3.0, "b": 5.0, "c": 4.0}, 60.0) == (5.0, ())


def test_a_round_with_late_devices_lasts_until_the_deadline():
    assert round_seconds({"c": 61.0, "b": 5.0, "a": math.inf}, 60.0) == (60.0, ("a", "c"))


def test_a_device_that_needs_exactly_the_deadline_is_in_time():
    assert round_seconds({"a": 60.0}, 60.0) == (60.0, ())


def test_a_round_that_asked_nobody_takes_no_time():
    assert round_seconds({}, 60.0) == (0.0, ())


@pytest.mark.parametrize("seconds", [-1.0, math.nan])
def test_a_time_that_is_none_is_refused(seconds):
    with pytest.raises(ProtocolError) as caught:
        round_seconds({"cam-07": seconds}, 60.0)
    assert str(caught.value) == (
        f"device 'cam-07': expected modelled seconds of 0 or more, got {seconds}"
    )


def test_a_clock_adds_up():
    clock = VirtualClock(10.0)
    assert clock.advance(2.5) == 12.5
    assert clock.advance(0.0) == 12.5
    assert clock.now_s == 12.5


@pytest.mark.parametrize("seconds", [-0.1, math.nan, math.inf])
def test_a_clock_never_runs_backwards_or_away(seconds):
    clock = VirtualClock()
    with pytest.raises(ProtocolError) as caught:
        clock.advance(seconds)
    assert str(caught.value) == f"a clock moves by 0 or more finite seconds, got {seconds}"
    assert clock.now_s == 0.0
