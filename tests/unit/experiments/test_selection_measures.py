"""What the comparison of selection rules prints, worked out by hand."""

import importlib
import math
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "experiments"


@pytest.fixture(scope="module")
def measures():
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("selection_measures")
    finally:
        sys.path.remove(str(FOLDER))
        sys.modules.pop("selection_measures", None)


def run(measures, accuracy, seconds_a_round, used):
    rounds = [
        {"test_accuracy": value, "simulated_total_s": seconds_a_round * (at + 1)}
        for at, value in enumerate(accuracy)
    ]
    decisions = [
        {"round": 1, "selection": {}},
        {"device_id": "a", "status": "late"},
        *({"device_id": device_id, "status": "used"} for device_id in used),
    ]
    return measures.curve(rounds, decisions, 4)


def test_an_accuracy_is_the_mean_of_five_rounds(measures):
    found = run(measures, [0.1, 0.3, 0.5, 0.7, 0.9, 1.1], 10.0, "aab")
    assert found.accuracy == pytest.approx((0.1, 0.2, 0.3, 0.4, 0.5, 0.7))
    assert found.seconds == (10.0, 20.0, 30.0, 40.0, 50.0, 60.0)


def test_fairness_counts_those_that_never_took_part(measures):
    """Two, one, none and none: 9 / (4 * 5)."""
    found = run(measures, [0.5], 1.0, "aab")
    assert found.jain == pytest.approx(9 / 20)
    assert found.used == 3
    assert math.isnan(measures.jain([0, 0]))


def test_what_counts_at_a_time_is_the_last_round_that_had_ended(measures):
    found = run(measures, [0.1, 0.3, 0.5], 10.0, "a")
    assert found.at(29.9) == pytest.approx(0.2)
    assert found.at(30.0) == pytest.approx(0.3)
    assert math.isnan(found.at(9.9))


def test_a_target_is_reached_in_the_first_round_that_has_it_or_never(measures):
    found = run(measures, [0.1, 0.5, 0.6], 10.0, "a")
    assert found.seconds_to(0.3) == 20.0
    assert found.seconds_to(0.9) is None


def test_the_table_compares_at_the_time_of_the_uniform_draws_and_at_a_quarter_of_it(measures):
    slow = run(measures, [0.1, 0.3, 0.5, 0.7], 3600.0, "abcd")
    fast = run(measures, [0.2, 0.4, 0.6, 0.8], 1800.0, "aabb")
    lines = measures.table({"uniform": {0: slow}, "gain": {0: fast}}, 0.25)
    assert lines == [
        (
            "| selection | at equal rounds | at equal time | at a quarter of it "
            "| minutes to 0.25 | reached | minutes in all | Jain's index |"
        ),
        "|---|---|---|---|---|---|---|---|",
        "| uniform | 0.400 | 0.400 | 0.100 | 180.0 | 1 of 1 | 240.0 | 1.000 |",
        "| gain | 0.500 | 0.500 | 0.300 | 60.0 | 1 of 1 | 120.0 | 0.500 |",
        "",
        "| than uniform | at equal rounds | at equal time | at a quarter of it |",
        "|---|---|---|---|",
        "| gain | +0.100 | +0.100 | +0.200 |",
    ]


def test_a_spread_is_the_standard_deviation_over_seeds_and_a_difference_has_its_error(measures):
    assert measures.spread([0.5, 0.7]) == "0.600 ± 0.141"
    assert measures.difference([0.5, 0.7], [0.4, 0.4]) == "+0.200 ± 0.100"
    assert measures.minutes([60.0, 120.0]) == "1.5 ± 0.7"
    assert measures.minutes([]) == "-"
