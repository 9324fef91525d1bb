from collections import Counter

import pytest

from strategies.selection import RULES, Offer
from strategies.selection.attendance import Attendance
from strategies.selection.gain import Gain
from strategies.selection.resource import Resource
from strategies.tables import SCORED
from tests.unit.strategies.selection.fake_fleet import FakeFleet, seats, vain

IDS = tuple(f"b{number}" for number in range(10))


@pytest.mark.parametrize("name", SCORED)
def test_of_nobody_nobody_is_chosen(name):
    chosen = RULES[name](seats()).cohort(Offer(1, ()))
    assert (chosen.cohort, chosen.rule) == ((), name)


@pytest.mark.parametrize("name", SCORED)
def test_a_single_client_is_asked_in_every_round(name):
    cohorts = FakeFleet(("a",)).play(RULES[name](seats(share=0.1)), range(1, 30))
    assert {chosen.cohort for chosen in cohorts} == {("a",)}


@pytest.mark.parametrize("name", ["gain", "oort"])
def test_while_nothing_is_known_everybody_explores(name):
    (chosen,) = FakeFleet(IDS).play(RULES[name](seats()), [1])
    assert set(chosen.why.values()) == {"explore"}
    assert len(chosen.cohort) == 5


def test_who_was_never_asked_comes_before_who_was_asked_where_scores_are_lacking():
    fleet = FakeFleet(IDS, failing=frozenset(IDS))
    first, second = fleet.play(Gain(seats()), [1, 2])
    assert set(first.cohort) | set(second.cohort) == set(IDS)


def test_new_clients_are_explored_in_proportion_to_their_speed():
    modelled_s = dict.fromkeys(IDS, 40.0) | {"b3": 10.0, "b4": None}
    firsts = Counter()
    for seed in range(600):
        rule = Resource(seats(share=0.1, exploration=1.0, seed=seed))
        firsts.update(FakeFleet(IDS, modelled_s=modelled_s).play(rule, [1])[0].cohort)
    # Weights 4, eight times 1, and next to nothing without a plan.
    assert abs(firsts["b3"] - 600 * 4 / 12) < 4 * (600 * 1 / 3 * 2 / 3) ** 0.5
    assert firsts["b4"] == 0


def test_where_nobody_is_new_those_that_have_waited_are_drawn_in_proportion():
    waited = {"a": 0, "b": 1, "c": 4}
    explored = Counter()
    for seed in range(600):
        rule = Gain(seats(share=0.1, exploration=1.0, seed=seed))
        rule.attendance = {i: Attendance(picked=1, waited=n) for i, n in waited.items()}
        explored.update(rule.cohort(Offer(9, tuple(waited))).cohort)
    assert set(explored) == {"b", "c"}
    assert abs(explored["c"] - 480) < 4 * (600 * 0.8 * 0.2) ** 0.5


def test_a_board_that_is_never_worth_it_is_asked_by_the_floor_alone():
    fleet = FakeFleet(IDS, work={"b7": 1e-6})
    rule = Resource(seats(share=0.9, exploration=0.0, fairness_rounds=6))
    reasons = [chosen.why.get("b7") for chosen in fleet.play(rule, range(1, 31))]
    assert reasons == [*[None] * 5, "floor"] * 5


def test_a_score_is_written_down_as_it_was_compared():
    fleet = FakeFleet(IDS, work=dict.fromkeys(IDS, 100 / 3))
    (chosen,) = fleet.play(Resource(seats()), [1])
    assert set(chosen.scores.values()) == {3.33333333}


def test_a_rule_that_was_restored_goes_on_as_the_other():
    fleet = FakeFleet(IDS, gains={"b2": 1.0}, losses={"b3": 2.0}, failing=frozenset({"b1"}))
    for name in SCORED:
        first, second = RULES[name](seats()), RULES[name](seats())
        fleet.play(first, range(1, 15))
        second.restore(first.state())
        assert second.state() == first.state()
        assert fleet.play(second, range(15, 30)) == fleet.play(first, range(15, 30))


def test_a_round_of_which_nothing_was_heard_changes_only_who_waited():
    rule = Gain(seats())
    chosen = rule.cohort(Offer(1, IDS))
    rule.observe([FakeFleet(IDS).records(chosen)[0], *(vain(i) for i in chosen.cohort)])
    assert rule.state()["seen"] == {}
    assert {one.waited for one in rule.attendance.values()} == {0, 1}
