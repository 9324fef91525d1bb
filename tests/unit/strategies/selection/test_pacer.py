import pytest

from strategies.selection.pacer import STEP_ROUNDS, Pacer


def after(*utilities, pacer=None):
    pacer = pacer or Pacer()
    for utility in utilities:
        pacer = pacer.after(utility)
    return pacer


RICH, POOR = [2.0] * STEP_ROUNDS, [1.0] * STEP_ROUNDS


def test_slower_clients_become_welcome_when_a_step_brings_less_than_the_one_before():
    assert after(*RICH).percent == 30
    assert after(*RICH, *POOR[1:]).percent == 30
    assert after(*RICH, *POOR).percent == 35


def test_nothing_changes_while_utility_does_not_fall():
    assert after(*POOR, *RICH).percent == 30
    assert after(*RICH, *RICH, *RICH).percent == 30


def test_it_looks_once_a_step():
    assert after(*RICH, *POOR, *[0.5] * (STEP_ROUNDS - 1)).percent == 35
    assert after(*RICH, *POOR, *[0.5] * STEP_ROUNDS).percent == 40


def test_it_ends_where_nobody_is_too_slow():
    pacer = Pacer()
    for step in range(40):
        pacer = after(*[100.0 - step] * STEP_ROUNDS, pacer=pacer)
    assert pacer.percent == 100
    assert pacer.preferred_s([1.0, 2.0]) is None


@pytest.mark.parametrize(("percent", "expected"), [(30, 4.0), (35, 4.0), (95, 10.0), (99, 10.0)])
def test_the_preferred_duration_is_a_percentile_of_those_there_are(percent, expected):
    assert Pacer(percent=percent).preferred_s(float(n) for n in range(10, 0, -1)) == expected


def test_without_durations_nobody_is_too_slow():
    assert Pacer().preferred_s([]) is None
