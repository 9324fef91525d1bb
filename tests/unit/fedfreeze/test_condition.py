"""What boards say of their battery and heat, and what is refused when it arrives."""

import json

import pytest

from fedfreeze.condition import Condition
from fedfreeze.errors import ProtocolError

KNOWN = Condition(0.5, 14_400.0, is_discharging=True, is_slowed=False, hottest_c=-3.5)


@pytest.mark.parametrize("condition", [Condition(), KNOWN, Condition(is_slowed=True)])
def test_a_condition_comes_back_from_its_text(condition):
    assert Condition.from_json(json.loads(json.dumps(condition.to_json()))) == condition


def test_what_nobody_knows_is_left_out():
    assert Condition(battery_share=0.0, is_slowed=False).to_json() == {
        "battery_share": 0.0,
        "is_slowed": False,
    }


FIELDS = "battery_share, battery_j, is_discharging, is_slowed, hottest_c"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], f"a condition has the fields {FIELDS}, got []"),
        ({"x": 1}, f"a condition has the fields {FIELDS}, got {{'x': 1}}"),
        (
            {"battery_share": 1.1},
            "condition.battery_share: expected a number from 0 to 1, got 1.1",
        ),
        (
            {"battery_share": True},
            "condition.battery_share: expected a number from 0 to 1, got True",
        ),
        ({"battery_j": -1}, "condition.battery_j: expected a number from 0 to inf, got -1"),
        (
            {"battery_j": float("inf")},
            "condition.battery_j: expected a number from 0 to inf, got inf",
        ),
        (
            {"hottest_c": float("nan")},
            "condition.hottest_c: expected a number from -inf to inf, got nan",
        ),
        ({"is_slowed": 1}, "condition.is_slowed: expected true or false, got 1"),
        ({"is_slowed": None}, "condition.is_slowed: expected true or false, got None"),
    ],
)
def test_anything_else_is_refused_by_its_name(data, message):
    with pytest.raises(ProtocolError) as caught:
        Condition.from_json(data)
    assert str(caught.value) == message
