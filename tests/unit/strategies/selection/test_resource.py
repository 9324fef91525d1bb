import pytest

from strategies.selection.resource import Resource
from tests.unit.strategies.selection.fake_fleet import FakeFleet, offer, seats, used, vain

IDS = ("a", "b", "c", "d")


def scores(rule, modelled_s, work=60.0):
    return dict(rule.scores(offer(2, modelled_s, work)).of)


def test_a_score_is_what_the_board_delivers_in_a_second():
    assert scores(Resource(seats()), {"a": 10.0, "b": 30.0}) == {"a": 6.0, "b": 2.0}


def test_a_board_on_which_no_plan_fits_has_no_score():
    assert scores(Resource(seats()), {"a": 10.0, "b": None}) == {"a": 6.0}


def test_a_board_whose_updates_do_not_arrive_scores_lower():
    rule = Resource(seats())
    for number in (1, 2, 3):
        rule.observe([used("a", number), vain("b", number, "late")])
    assert scores(rule, {"a": 10.0, "b": 10.0}) == {"a": 6.0, "b": 6.0 * 1 / 4}


def test_a_board_that_claims_to_need_no_time_has_a_finite_score():
    assert scores(Resource(seats()), {"a": 0.0, "b": 5e-324}) == {"a": 6e4, "b": 6e4}


def test_the_fastest_boards_take_the_seats_that_nobody_explores():
    fleet = FakeFleet(IDS, modelled_s={"a": 4.0, "b": 1.0, "c": 2.0, "d": 3.0})
    (chosen,) = fleet.play(Resource(seats(exploration=0.0)), [1])
    assert chosen.cohort == ("b", "c")
    assert chosen.why == {"b": "exploit", "c": "exploit"}
    assert chosen.scores == pytest.approx({"a": 25, "b": 100, "c": 50, "d": 100 / 3})


def test_a_board_on_which_no_plan_fits_takes_no_seat_of_explorers():
    """The floor alone would ask it: it may do better by then, and only it can say so."""
    fleet = FakeFleet(IDS, modelled_s={"d": None})
    rule = Resource(seats(share=0.25, exploration=1.0, fairness_rounds=12))
    asked = [number for number, chosen in enumerate(fleet.play(rule, range(1, 37)), 1)
             if "d" in chosen.cohort]  # fmt: skip
    assert asked == [12, 24, 36]
