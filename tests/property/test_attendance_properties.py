"""Who is there, who leaves and what it takes, for every way to take part."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from device_profiles.battery import lasts_s
from device_profiles.board import load_board
from device_profiles.clock import VirtualClock, round_seconds, round_times
from device_profiles.cost import modelled_energy_j
from device_profiles.fleet import fleet_from_text
from device_profiles.presence import Presence, available, leaves_s, opens_s
from fedfreeze.errors import FleetError
from fedfreeze.plan import PlanCost
from strategies.attendance import Attendance
from strategies.round_result import RoundResult

LAPTOP = load_board("laptop")
SECONDS = st.floats(0, 100)
COSTS = st.builds(PlanCost, SECONDS, SECONDS, SECONDS, st.just(0.0))
# Steps between the edges of windows; windows may touch.
TRACES = st.lists(st.integers(0, 4), min_size=2, max_size=12).map(
    lambda steps: [
        (begin, begin + 1 + length)
        for begin, length in zip(_edges(steps), steps[1::2], strict=False)
    ]
)


def _edges(steps):
    begin = 0
    for gap, length in zip(steps[::2], steps[1::2], strict=False):
        begin += gap
        yield begin
        begin += 1 + length


def is_open(trace, now_s):
    return any(begin <= now_s < end for begin, end in trace)


# ---- windows


@given(TRACES, st.integers(0, 160))
def test_windows_open_and_close_as_counting_half_seconds_finds(trace, halves):
    now_s, presence = halves / 2, Presence(tuple((float(b), float(e)) for b, e in trace))
    asked = {"seed": 0, "device_id": "a", "round_number": 1}
    assert available(presence, **asked, now_s=now_s) == is_open(trace, now_s)
    steps = [now_s + step / 2 for step in range(400)]
    assert leaves_s(presence, now_s) == next(s for s in steps if not is_open(trace, s))
    begins = [begin for begin, _ in trace if begin > now_s]
    assert opens_s(presence, now_s) == min(begins, default=math.inf)


# ---- batteries


@given(COSTS, st.floats(0, 1e5))
def test_what_a_board_draws_until_its_battery_is_empty_is_what_that_held(cost, held_j):
    """Once its work is done; before that, energy is not counted by the second."""
    seconds = lasts_s(LAPTOP, cost, held_j)
    work_j = modelled_energy_j(LAPTOP, cost, 0.0)
    assert (seconds < cost.modelled_total_s) <= (held_j <= work_j * (1 + 1e-12))
    if seconds >= cost.modelled_total_s:
        assert math.isclose(
            modelled_energy_j(LAPTOP, cost, seconds), held_j, rel_tol=1e-9, abs_tol=1e-9
        )


@given(COSTS, st.floats(0, 1e5), st.floats(0, 1e5))
def test_a_fuller_battery_lasts_longer_and_at_most_as_long_as_idling(cost, first_j, second_j):
    less, more = sorted((first_j, second_j))
    assert lasts_s(LAPTOP, cost, less) <= lasts_s(LAPTOP, cost, more)
    assert lasts_s(LAPTOP, cost, more) <= more / LAPTOP.power.idle.value + 1e-9


# ---- the times of a round

NAMES = st.sampled_from("abcdef")


@given(st.dictionaries(NAMES, SECONDS), st.dictionaries(NAMES, SECONDS), st.floats(0.1, 100))
def test_an_update_is_in_time_late_or_lost_and_a_round_never_lasts_beyond_its_deadline(
    totals_s, leave_s, deadline_s
):
    times = round_times(totals_s, leave_s, deadline_s)
    assert not set(times.late) & set(times.lost)
    for name, total_s in totals_s.items():
        stays_s = leave_s.get(name, math.inf)
        if name in times.lost:
            assert stays_s < total_s
        elif name in times.late:
            assert total_s > deadline_s
        else:
            assert total_s <= min(deadline_s, stays_s)
    assert times.round_s <= deadline_s
    if times.late or times.lost:
        assert times.round_s == deadline_s
    assert round_times(totals_s, {}, deadline_s).round_s == round_seconds(totals_s, deadline_s)[0]


# ---- whole runs


def way(availability, joules):
    lines = [f"availability = {availability}"] if availability is not None else []
    if joules is not None:
        lines.append(f'battery = {{ capacity = "{joules} J" }}')
    return "\n".join(lines)


AVAILABILITIES = (
    st.none()
    | st.sampled_from([0.0, 0.2, 0.9, 1.0])
    | TRACES.map(lambda trace: [[100 * begin, 100 * end] for begin, end in trace])
)
WAYS = st.builds(way, AVAILABILITIES, st.none() | st.integers(1, 4000))


def played(ways, costs, deadline_s):
    """Every round of a run as far as it comes, and what the batteries hold after each."""
    text = "".join(f'[[board]]\nprofile = "laptop"\n{way}\n' for way in ways)
    fleet = fleet_from_text(text, "mine.toml")
    attendance = Attendance(fleet, seed=0, deadline_s=deadline_s)
    profiles = {f"sim-{index:04d}": "laptop" for index in range(len(ways))}
    clock, story = VirtualClock(), []
    for number, cost in enumerate(costs, start=1):
        result = RoundResult(number)
        begin_s = clock.now_s
        try:
            result.begins(attendance.open_round(number, profiles, len(ways), clock))
        except FleetError:
            break
        assert clock.now_s >= begin_s
        result.asked = {i: None for i in profiles if i not in result.away}
        costs_of = dict.fromkeys(result.asked, cost)
        result.ends(attendance.close_round(costs_of, clock, asked=result.asked))
        story.append((result, clock.now_s, attendance.state()))
    return story


@given(
    st.lists(WAYS, min_size=1, max_size=4),
    st.lists(COSTS, min_size=1, max_size=8),
    st.floats(1, 100),
)
def test_a_round_is_asked_of_somebody_and_batteries_only_run_down(ways, costs, deadline_s):
    story = played(ways, costs, deadline_s)
    assert story == played(ways, costs, deadline_s)
    before, total_j, now_s = {}, 0.0, 0.0
    for result, time_s, state in story:
        assert result.asked
        assert time_s >= now_s
        for device_id, left_j in state["battery_j"].items():
            assert 0 <= left_j <= before.get(device_id, math.inf)
        assert set(result.modelled_energy_j) == set(result.asked)
        assert set(result.battery_j) == set(result.asked) & set(state["battery_j"])
        total_j += sum(result.modelled_energy_j.values())
        assert state["modelled_energy_total_j"] == total_j
        before, now_s = state["battery_j"], time_s
