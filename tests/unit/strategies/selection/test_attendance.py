import json

from strategies.selection.attendance import NEVER, Attendance, after, from_json, to_json
from tests.unit.strategies.selection.fake_fleet import used, vain


def choice(number, **why):
    """The record of a round in which these were there; asked are those with a reason."""
    clients = {i: {} if reason is None else {"why": reason} for i, reason in why.items()}
    return {"round": number, "selection": {"rule": "gain", "clients": clients}}


ROUNDS = [
    [choice(1, a="explore", b="explore", c=None), used("a"), vain("b", status="late")],
    [choice(2, a="exploit", c=None), used("a", 2)],
    [choice(3, a=None, b="floor", c="explore"), vain("b", 3, "sat-out"), vain("c", 3, "void")],
]


def test_it_counts_who_was_asked_who_was_merged_and_how_long_somebody_has_waited():
    found = {}
    for records in ROUNDS:
        found = after(found, records)
    assert found == {
        "a": Attendance(picked=2, used=2, vain=0, waited=1),
        "b": Attendance(picked=2, used=0, vain=2, waited=0),
        "c": Attendance(picked=1, used=0, vain=0, waited=0),
    }


def test_a_round_in_which_a_client_is_away_is_no_round_that_it_waits():
    found = after({}, [choice(1, a=None, b=None)])
    found = after(found, [choice(2, a=None)])
    assert (found["a"].waited, found["b"].waited) == (2, 1)


def test_a_round_without_a_quorum_says_nothing_of_those_that_answered():
    found = after({}, [choice(1, a="explore"), vain("a", status="void")])
    assert found["a"] == Attendance(picked=1)
    assert found["a"].reliability == 1


def test_who_fails_is_relied_on_less_and_less_but_never_given_up():
    assert NEVER.reliability == 1
    assert Attendance(vain=1).reliability == 0.5
    assert Attendance(used=3, vain=1).reliability == 0.8
    assert 0 < Attendance(vain=10**6).reliability < 1e-5


def test_it_survives_a_checkpoint():
    found = {}
    for records in ROUNDS:
        found = after(found, records)
    assert from_json(json.loads(json.dumps(to_json(found)))) == found
