import pytest

from device_profiles.cost import training_flops
from strategies.freeze.deadline import Deadline, DeadlineSettings
from strategies.freeze.policy import RoundView
from tests.unit.strategies.samples import LIMITS, LOAD, board, client_of, stack

LAYOUT = stack()
NAMES = LAYOUT.names
# So slow that training is all that takes time.
SLOW = board(flops=1e3, uplink=1e12, downlink=1e12)


def seconds(*layers):
    return training_flops(LAYOUT, layers, LOAD.examples) * LIMITS.epochs / 1e3


def advice(limit_s):
    policy = Deadline(DeadlineSettings(soft_deadline=limit_s), LAYOUT)
    return policy.advise(RoundView(1, 9, 0.1), client_of(LAYOUT, capacity=SLOW))


@pytest.mark.parametrize("first", range(4))
def test_the_shortest_prefix_that_meets_the_deadline_is_frozen(first):
    assert tuple(advice(seconds(*NAMES[first:]) * 1.001).frozen) == NAMES[:first]


def test_just_below_that_one_more_layer_is():
    assert tuple(advice(seconds(*NAMES[1:]) * 0.999).frozen) == NAMES[:2]


def test_where_no_prefix_is_long_enough_the_last_layer_trains():
    assert tuple(advice(1e-3).frozen) == NAMES[:3]


def test_the_log_holds_what_was_compared():
    found = advice(30.0)
    assert found.inputs["tail"]["seconds_from_here"] == pytest.approx(seconds("tail", "head"))
    assert {reason.code for reason in found.frozen.values()} == {"compute"}
    assert found.frozen["stem"].detail == (
        f"from here on a round takes {seconds('tail', 'head'):.3g} s or more, the soft deadline "
        "is 30 s"
    )
