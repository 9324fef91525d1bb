import json
import math

import numpy as np
import pytest

from strategies.local_step import LayerMeasures
from strategies.residual_watch import ResidualWatch, residual_ratio
from tests.unit.strategies.samples import stack

LAYOUT = stack(stem=4, head=1)
BEFORE = {"stem.w": np.full(4, 2, np.float32), "head.w": np.full(1, -3, np.float32)}


def ratio(norm, **movements):
    measures = {name: LayerMeasures(0.0, movement) for name, movement in movements.items()}
    return residual_ratio(norm, measures, BEFORE, LAYOUT)


def test_the_ratio_is_over_the_norm_of_what_training_moved():
    """The stem has the norm 4 and the head 3; they moved by 3/4 and 4/3 of that: 3 and 4."""
    assert ratio(10.0, stem=0.75, head=4 / 3) == pytest.approx(2)
    assert ratio(6.0, stem=0.75) == pytest.approx(2)


def test_a_ratio_without_movement_is_infinite_unless_nothing_is_left_either():
    assert ratio(1.0, stem=0.0) == math.inf
    assert ratio(0.0, stem=0.0) == 0
    assert ratio(0.0, stem=1.0) == 0


def test_without_measures_the_ratio_is_unknown():
    assert ratio(1.0) is None


def noted(ratios, watch=None):
    watch = watch or ResidualWatch()
    return [watch.note("cam", ratio) for ratio in ratios]


def test_the_fifth_round_in_a_row_above_10_gives_a_warning_with_the_fix():
    *before, warning = noted([11, 12, math.inf, 10.5, 40.25])
    assert before == [None] * 4
    assert warning == (
        "cam: expected a residual of up to 10 times the round's update, got 40.2 times, and more "
        "than 10 for 5 rounds in a row; raise its byte budget (compression.upload-time, "
        "compression.compression-ratio) or let stale residuals go "
        '(residual.frozen, residual.missed = "decay")'
    )


def test_one_round_at_the_limit_starts_the_count_again():
    assert noted([11, 11, 11, 11, 10, 11, 11, 11, 11]) == [None] * 9


def test_it_warns_again_every_five_rounds_and_not_in_between():
    assert [bool(w) for w in noted([11] * 11)] == [False] * 4 + [True] + [False] * 4 + [True, False]


def test_clients_are_counted_apart():
    watch = ResidualWatch()
    noted([11] * 4, watch)
    assert watch.note("other", 11) is None
    assert watch.note("cam", 11) is not None


def test_a_watch_that_was_restored_goes_on_where_it_was():
    watch, again = ResidualWatch(), ResidualWatch()
    noted([11] * 4, watch)
    watch.note("b", 1.0)
    again.restore(json.loads(json.dumps(watch.state())))
    assert again.state() == {"cam": 4}
    assert again.note("cam", 11) is not None
