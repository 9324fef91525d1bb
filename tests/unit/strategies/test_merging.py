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
