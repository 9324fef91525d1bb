"""The virtual clock and the length of a round."""

import math

import pytest

from device_profiles.clock import RoundTimes, VirtualClock, round_seconds, round_times
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


# ---- boards that leave


def test_nobody_is_lost_where_nobody_leaves():
    totals_s = {"a": 3.0, "b": 61.0}
    assert round_times(totals_s, {}, 60.0) == RoundTimes(60.0, late=("b",))
    assert round_times(totals_s, {"a": math.inf, "b": math.inf}, 60.0).lost == ()


def test_an_update_is_lost_if_its_device_left_before_it_arrived():
    totals_s = {"c": 3.0, "b": 5.0, "a": 5.0}
    times = round_times(totals_s, {"c": 2.9, "b": 5.0, "a": 4.9}, 60.0)
    assert times == RoundTimes(60.0, late=(), lost=("a", "c"))


def test_who_leaves_after_the_deadline_was_late_before():
    assert round_times({"a": 90.0}, {"a": 60.0}, 60.0) == RoundTimes(60.0, late=("a",))
    assert round_times({"a": 90.0}, {"a": 59.0}, 60.0) == RoundTimes(60.0, lost=("a",))


@pytest.mark.parametrize("seconds", [-1.0, math.nan])
def test_a_time_that_is_none_is_refused_with_those_who_leave_too(seconds):
    with pytest.raises(ProtocolError):
        round_times({"cam-07": seconds}, {"cam-07": 5.0}, 60.0)


def test_a_clock_moves_to_a_time_to_the_last_bit():
    clock = VirtualClock(0.1)
    assert clock.move_to(0.3) == clock.now_s == 0.3
    assert clock.move_to(0.3) == 0.3


@pytest.mark.parametrize("time_s", [9.0, math.nan, math.inf])
def test_a_clock_is_not_moved_back_or_away(time_s):
    clock = VirtualClock(10.0)
    with pytest.raises(ProtocolError) as caught:
        clock.move_to(time_s)
    assert str(caught.value) == (
        f"expected a finite time from 10.0 s on, got {time_s} s; a clock never runs backwards"
    )
    assert clock.now_s == 10.0
