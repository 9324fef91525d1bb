import pytest

from strategies.selection.gain import Gain
from tests.unit.strategies.selection.fake_fleet import FakeFleet, offer, seats, used, vain

EVERYBODY = {"a": None, "b": None, "c": None}


def taught(*rounds):
    """A rule that has seen, in each round, these gains by device id."""
    rule = Gain(seats())
    for number, gains in enumerate(rounds, 1):
        rule.observe(
            [
                vain(device_id, number)
                if gain is None
                else used(device_id, number, collaborative_gain=gain)
                for device_id, gain in gains.items()
            ]
        )
    return rule


def scores(rule, number):
    return dict(rule.scores(offer(number, EVERYBODY)).of)


def test_nothing_is_known_before_the_first_update():
    found = Gain(seats()).scores(offer(1, EVERYBODY))
    assert (found.of, found.figures) == ({}, {})


def test_the_first_gain_is_the_average_and_later_ones_count_a_half():
    assert scores(taught({"a": 1.0, "b": -0.4}), 2) == pytest.approx({"a": 1.0, "b": -0.4})
    found = scores(taught({"a": 1.0, "b": 0.0}, {"a": 0.5, "b": 1.0}), 3)
    assert found == pytest.approx({"a": 0.75, "b": 0.5})


def test_an_order_that_ended_in_no_update_brought_nothing():
    assert scores(taught({"a": 1.0}, {"a": None}), 3) == pytest.approx({"a": 0.5})


def test_of_a_client_that_only_failed_nothing_is_known():
    assert scores(taught({"a": 1.0, "b": None}), 2) == pytest.approx({"a": 1.0})


def test_of_a_client_that_trained_alone_nothing_is_learnt():
    rule = taught({"a": 1.0})
    rule.observe([used("a", 2), used("b", 2)])
    assert scores(rule, 2) == pytest.approx({"a": 1.0})


def test_what_was_seen_long_ago_fades_towards_the_mean():
    rule = taught({"a": 1.0, "b": 0.0})
    assert scores(rule, 3) == pytest.approx({"a": 0.5 + 0.5 * 0.95, "b": 0.5 - 0.5 * 0.95})
    assert scores(rule, 10_000) == pytest.approx({"a": 0.5, "b": 0.5})


def test_a_round_without_a_quorum_teaches_nothing():
    rule = taught({"a": 1.0})
    rule.observe([vain("a", 2, "void")])
    assert scores(rule, 2) == pytest.approx({"a": 1.0})


def test_those_that_brought_the_most_are_asked_again():
    ids = tuple("abcdef")
    fleet = FakeFleet(ids, gains={"c": 1.5, "e": 1.2, "a": -1.0})
    rule = Gain(seats(share=1.0, exploration=0.0))
    fleet.play(rule, [1])
    rule.seats = seats(share=0.3, exploration=0.0)
    (chosen,) = fleet.play(rule, [2])
    assert chosen.cohort == ("c", "e")
    assert set(chosen.why.values()) == {"exploit"}
