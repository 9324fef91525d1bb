"""Errors of predictions over a whole run, counted from records of ``decisions.jsonl``."""

import random
import statistics

import pytest

from server_app.prediction_errors import PredictionErrors


def record(**rows):
    """A client's record; each quantity as (modelled, measured), None for what is not known."""
    cost = {
        quantity: {
            name: value
            for name, value in zip(("modelled", "measured"), pair, strict=True)
            if value is not None
        }
        for quantity, pair in rows.items()
    }
    return {"round": 1, "device_id": "cam", "cost": cost}


def summary(*records):
    errors = PredictionErrors()
    errors.add(records)
    return errors.summary()


def test_each_quantity_has_its_count_median_and_worst_error():
    found = summary(
        record(upload_bytes=(110, 100), compute_s=(2.0, 4.0)),
        record(upload_bytes=(80, 100), compute_s=(5.0, 4.0)),
        record(upload_bytes=(100, 100)),
    )
    assert found == {
        "predictions": {
            # 10 % too much, 20 % too little, none.
            "upload_bytes": {
                "count": 3,
                "median_error": pytest.approx(0.1),
                "worst_error": pytest.approx(-0.2),
            },
            # Half of it, and a quarter too much: between two, the median is their mean.
            "compute_s": {"count": 2, "median_error": 0.375, "worst_error": -0.5},
        }
    }


def test_a_prediction_that_was_right_each_time_is_off_by_nothing():
    assert summary(record(download_bytes=(7, 7)))["predictions"]["download_bytes"] == {
        "count": 1,
        "median_error": 0.0,
        "worst_error": 0.0,
    }


@pytest.mark.parametrize(
    "entry",
    [
        {"round": 1},
        {"round": 1, "cost": None},
        {"round": 1, "cost": [1]},
        {"round": 1, "cost": {"upload_bytes": 7}},
        record(),
        record(upload_bytes=(5, None)),
        record(upload_bytes=(None, 5)),
        record(upload_bytes=(5, 0)),
        record(upload_bytes=(5, -1)),
        record(upload_bytes=("5", 5)),
        record(upload_bytes=(True, 5)),
        record(upload_bytes=(5, float("nan"))),
        record(upload_bytes=(10**400, 5)),
        record(upload_bytes=(1e17, 5e-324)),
        record(simulated_s=(5, 5)),
    ],
    ids=str,
)
def test_where_a_number_is_missing_or_none_at_all_nothing_is_said(entry):
    assert summary(entry) == {}


def test_the_median_is_that_of_all_rounds_in_whatever_order_they_came():
    chance = random.Random(0)
    pairs = [(chance.randint(1, 1_000), chance.randint(1, 1_000)) for _ in range(101)]
    found = summary(*(record(energy_j=pair) for pair in pairs))["predictions"]["energy_j"]
    errors = [modelled / measured - 1 for modelled, measured in pairs]
    assert found["count"] == 101
    assert found["median_error"] == statistics.median(map(abs, errors))
    assert found["worst_error"] == max(errors, key=abs)


def test_rounds_that_are_added_one_by_one_give_what_all_at_once_give():
    records = [record(upload_bytes=(n * n, 50), energy_j=(n, 3)) for n in range(1, 9)]
    one_by_one = PredictionErrors()
    for entry in records:
        one_by_one.add([entry])
    assert one_by_one.summary() == summary(*records)
