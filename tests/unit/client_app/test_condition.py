"""How a board says that it is."""

import pytest

from client_app.condition import condition_now
from fedfreeze.condition import Condition
from tests.board_trees import LAPTOP, PHONE, PI_4, planted


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (PHONE, Condition(0.15, 14_400.0, is_discharging=True, is_slowed=True, hottest_c=71.0)),
        (LAPTOP, Condition(0.8, 180_000.0, is_discharging=False)),
        (PI_4, Condition(is_slowed=True, hottest_c=61.834)),
        ({}, Condition()),
    ],
    ids=["phone", "laptop", "Pi", "nothing"],
)
def test_a_board_says_what_its_sensors_do_and_nothing_else(tmp_path, files, expected):
    found = condition_now(planted(tmp_path, files)).to_json()
    assert found == pytest.approx(expected.to_json())
