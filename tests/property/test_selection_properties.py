"""Choosing a cohort by score: what holds whoever is there, and whatever they claim."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from strategies.selection import RULES, Offer, Seats
from strategies.selection.floor import window
from strategies.selection.log import offer_of
from strategies.tables import SCORED
from tests.unit.strategies.selection.fake_fleet import FakeFleet

IDS = tuple(f"b{number:02d}" for number in range(12))
shares = st.floats(0.01, 1.0)
seats = st.builds(Seats, shares, st.floats(0.0, 1.0), st.integers(1, 8), st.integers(0, 9))
names = st.sampled_from(SCORED)
finite = st.floats(0, 1.7e308)


@st.composite
def fleets(draw):
    """Boards of any speed; some claim what cannot be, some fail, on some no plan fits."""
    ids = IDS[: draw(st.integers(1, 12))]

    def some(values):
        return draw(st.dictionaries(st.sampled_from(ids), values))

    return FakeFleet(
        ids,
        modelled_s=some(st.one_of(st.none(), st.floats(0, 1e6))),
        work=some(st.floats(0, 1e60)),
        gains=some(st.floats(-2, 2)),
        losses=some(finite),
        examples=some(st.integers(1, 2**63 - 1)),
        failing=frozenset(draw(st.sets(st.sampled_from(ids)))),
    )


def whole_log(fleet, rule, numbers, there=None):
    """Every record of these rounds, as it comes back from the file."""
    records = []
    for number in numbers:
        chosen = rule.cohort(fleet.offer(number, None if there is None else there(number)))
        text = json.dumps(fleet.records(chosen), allow_nan=False)
        records.append(json.loads(text))
        rule.observe(records[-1])
    return records


def picked(records):
    return {i: e["why"] for i, e in records[0]["selection"]["clients"].items() if "why" in e}


@given(names, seats, fleets())
def test_a_cohort_is_of_those_that_are_there_and_as_large_as_a_uniform_one(name, seats, fleet):
    rule, uniform = RULES[name](seats), RULES["uniform"](seats)
    for number in range(1, 13):
        there = fleet.ids[number % 3 :] or fleet.ids
        chosen = rule.cohort(fleet.offer(number, there))
        assert set(chosen.cohort) <= set(there)
        assert list(chosen.cohort) == sorted(set(chosen.cohort)) == sorted(chosen.why)
        assert len(chosen.cohort) == len(uniform.cohort(Offer(number, there)).cohort)
        assert len(chosen.cohort) == max(1, math.ceil(round(seats.share * len(there), 9)))
        assert all(math.isfinite(score) for score in chosen.scores.values())
        rule.observe(fleet.records(chosen))


@given(names, seats, fleets())
def test_everybody_that_is_there_is_asked_within_every_window_of_rounds(name, seats, fleet):
    rule = RULES[name](seats)
    rounds = window(seats.fairness_rounds, len(fleet.ids), seats.size(len(fleet.ids)))
    cohorts = [set(chosen.cohort) for chosen in fleet.play(rule, range(1, 3 * rounds + 1))]
    for begin in range(2 * rounds + 1):
        assert set().union(*cohorts[begin : begin + rounds]) == set(fleet.ids)


@given(names, seats, fleets(), st.integers(0, 2**12 - 1))
def test_a_client_that_comes_and_goes_waits_less_than_twice_the_window_of_its_own_rounds(
    name, seats, fleet, pattern
):
    """One client is there now and then; nobody else ever leaves.

    Where the share allows no more than one turn in each window, two turns may fall together when it
    comes back, and then one of them has to wait.
    """
    one, others = fleet.ids[0], fleet.ids[1:]
    rule = RULES[name](seats)
    sizes = [seats.size(len(fleet.ids) - gone) for gone in (0, 1) if len(fleet.ids) > gone]
    rounds = window(seats.fairness_rounds, len(fleet.ids), min(sizes))
    waited = 0
    for number in range(1, 6 * rounds):
        there = fleet.ids if pattern >> number % 12 & 1 else others
        chosen = rule.cohort(fleet.offer(number, there))
        rule.observe(fleet.records(chosen))
        if one in there:
            waited = 0 if one in chosen.cohort else waited + 1
        assert waited < 2 * rounds


@given(st.sampled_from(["resource", "gain"]), shares, st.floats(0.0, 1.0), st.integers(0, 9))
def test_the_exploration_share_is_what_explores_once_everybody_is_known(
    name, share, exploration, seed
):
    fleet = FakeFleet(IDS, gains={"b01": 1.0}, work={"b02": 50.0})
    rule = RULES[name](Seats(share, exploration, 10**6, seed))
    fleet.play(rule, range(1, 200))
    if any(one.picked == 0 for one in rule.attendance.values()):
        return
    size = rule.seats.size(len(IDS))
    wanted = exploration * size
    for chosen in fleet.play(rule, range(200, 206)):
        explored = list(chosen.why.values()).count("explore")
        room = min(size, len(IDS) - size)  # those who were asked last have not waited
        assert min(room, math.floor(round(wanted, 9))) <= explored <= math.ceil(round(wanted, 9))


@given(names, seats, fleets())
def test_neither_the_order_of_the_candidates_nor_of_the_records_matters(name, seats, fleet):
    first, second = RULES[name](seats), RULES[name](seats)
    for number in range(1, 9):
        one = first.cohort(fleet.offer(number))
        there = fleet.offer(number, reversed(fleet.ids))
        turned = Offer(number, there.candidates, dict(reversed(there.predictions.items())))
        two = second.cohort(turned)
        assert (one.cohort, one.why, one.scores) == (two.cohort, two.why, two.scores)
        records = fleet.records(one)
        first.observe(records)
        second.observe([records[0], *reversed(records[1:])])


@given(names, seats, fleets(), st.integers(1, 10))
def test_every_cohort_follows_from_the_log_and_a_restored_rule_goes_on_alike(
    name, seats, fleet, stop
):
    records = whole_log(fleet, RULES[name](seats), range(1, 12))
    rule = RULES[name](seats)
    for number, of_round in enumerate(records):
        if number == stop:
            state = json.loads(json.dumps(rule.state(), allow_nan=False))
            rule = RULES[name](seats)
            rule.restore(state)
        chosen = rule.cohort(offer_of(of_round[0]))
        assert dict(chosen.why) == picked(of_round)
        rule.observe(of_round)
