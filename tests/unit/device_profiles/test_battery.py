"""How long a battery lasts, against sums done by hand."""

import math

import pytest

from device_profiles.battery import lasts_s
from device_profiles.board import load_board
from device_profiles.cost import modelled_energy_j
from fedfreeze.plan import PlanCost

LAPTOP = load_board("laptop")  # 6 W idle, 28 W computing, 8 W in transfers
COST = PlanCost(2.0, 5.0, 3.0, 0.0)  # 16 J down, 140 J of training, 24 J up


@pytest.mark.parametrize(
    ("held_j", "seconds"),
    [
        (0.0, 0.0),
        (8.0, 1.0),
        (16.0, 2.0),
        (16.0 + 56.0, 4.0),
        (16.0 + 140.0, 7.0),
        (156.0 + 12.0, 8.5),
        (156.0 + 24.0, 10.0),
        (180.0 + 60.0, 20.0),
    ],
)
def test_a_battery_lasts_through_transfers_training_and_idling_in_turn(held_j, seconds):
    assert lasts_s(LAPTOP, COST, held_j) == seconds


def test_a_round_that_ends_when_the_battery_does_takes_what_it_held():
    for held_j in (180.0, 181.5, 4_000.0):
        round_s = lasts_s(LAPTOP, COST, held_j)
        assert modelled_energy_j(LAPTOP, COST, round_s) == pytest.approx(held_j, rel=1e-12)


def test_a_battery_that_holds_all_the_work_lasts_to_its_last_second():
    """To the last bit: an update that arrives with the last joule has arrived."""
    cost = PlanCost(0.1, 0.2, 0.3, 0.0)
    work_j = 8.0 * 0.1 + 28.0 * 0.2 + 8.0 * 0.3
    assert lasts_s(LAPTOP, cost, work_j + 1e-9) >= cost.modelled_total_s
    assert lasts_s(LAPTOP, cost, math.nextafter(0.8, 0)) < 0.1
