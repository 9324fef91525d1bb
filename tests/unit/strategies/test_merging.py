import pytest

from fedfreeze.errors import FleetError
from strategies.merging import Quorum
from strategies.round_result import RoundResult


def result(number, asked=(), answered=(), late=(), sat_out=(), **failed):
    """A round in which only who did what matters, not what they said."""
    return RoundResult(
        number,
        asked=dict.fromkeys(asked),
        answers=dict.fromkeys(answered),
        late=tuple(late),
        sat_out=dict.fromkeys(sat_out, "no room"),
        failed=failed,
    )


@pytest.mark.parametrize(
    ("answered", "late", "sat_out", "met"),
    [
        ("abc", "", "", True),
        ("ab", "", "", False),  # a half of four
        ("ab", "", "d", True),  # two thirds of three
        ("abc", "c", "", False),
        ("", "", "abcd", False),  # all of nobody
    ],
)
def test_the_quorum_is_a_share_of_those_that_were_asked_and_did_not_sit_out(
    answered, late, sat_out, met
):
    played = result(1, "abcd", answered, late, sat_out)
    assert Quorum(0.6).meets(played) is met
    assert played.void is not met


def test_two_void_rounds_in_a_row_are_borne_and_a_good_one_starts_the_count_again():
    quorum = Quorum(0.6)
    for number, answered in enumerate(["", "", "ab", "", ""], start=1):
        assert quorum.meets(result(number, "ab", answered)) == bool(answered)
    assert quorum.void_rounds == 2


def test_the_third_void_round_in_a_row_ends_the_run_with_its_reasons():
    quorum = Quorum(0.6)
    quorum.void_rounds = 2
    with pytest.raises(FleetError) as caught:
        quorum.meets(result(7, "abcd", "ab", "b", "d", c="no reply"))
    assert str(caught.value) == (
        "3 void rounds in a row; the last one: round 7 is void: 1 of 3 clients answered in time, "
        "the quorum is 0.6 (c: no reply; b: late; d sat out: no room)"
    )


def test_who_was_away_does_not_count_towards_the_quorum_and_who_was_lost_does():
    played = result(1, "ab", "ab")
    played.away = {"c": "not there by chance", "d": "its battery is empty"}
    assert Quorum(0.6).meets(played)
    played.lost = {"b": "it left 2 s before its update would have arrived"}
    assert not Quorum(0.6).meets(played)


def test_a_void_round_is_forgiven_if_who_was_there_could_not_train_and_others_may_come():
    quorum = Quorum(0.6)
    quorum.void_rounds = 2
    for number in range(1, 9):
        played = result(number, "a", "", sat_out="ab")
        played.awaited_s = 3600.0
        assert not quorum.meets(played)
        assert played.void
    assert quorum.void_rounds == 2
    played.awaited_s = None
    with pytest.raises(FleetError):
        quorum.meets(played)


def test_boards_that_were_asked_in_vain_count_even_where_more_may_come():
    quorum = Quorum(0.6)
    played = result(1, "ab", "ab", late="ab")
    played.awaited_s = 3600.0
    assert not quorum.meets(played)
    assert quorum.void_rounds == 1


def test_the_reasons_of_a_void_round_name_who_was_lost_and_who_was_away():
    quorum = Quorum(0.6)
    quorum.void_rounds = 2
    played = result(7, "ab", "ab", late="a")
    played.lost, played.away = {"b": "it left 2 s before"}, {"c": "its windows are over"}
    with pytest.raises(FleetError) as caught:
        quorum.meets(played)
    assert str(caught.value) == (
        "3 void rounds in a row; the last one: round 7 is void: 0 of 2 clients answered in time, "
        "the quorum is 0.6 (a: late; b lost: it left 2 s before; c away: its windows are over)"
    )
