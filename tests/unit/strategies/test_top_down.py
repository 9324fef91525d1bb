"""Right values: Howard and Ruder (2018), section 3, by hand."""

import pytest

from strategies.freeze.policy import RoundView
from strategies.freeze.top_down import TopDown, TopDownSettings, slanted_triangular
from strategies.stages import merged
from tests.unit.strategies.samples import client_of, stack

LAYOUT = stack(stem=100, body=200, head=50)
CLIENT = client_of(LAYOUT)
VIEW = RoundView(1, 9, 0.1)


def policy(**keys):
    return TopDown(TopDownSettings(**keys), LAYOUT)


def test_modules_are_unfrozen_from_above():
    advice = policy(unfreezing_share=0.3).advise(VIEW, CLIENT)
    assert [(round(stage.share, 12), stage.layers) for stage in advice.stages] == [
        (0.1, ("head",)),
        (0.1, ("head", "body")),
        (0.8, ("head", "body", "stem")),
    ]


def test_a_stage_begins_when_the_lowest_of_its_modules_is_unfrozen():
    found = policy(unfreezing_share=0.3)
    stages = merged(found.advise(VIEW, CLIENT).stages, LAYOUT.names)
    assert found.watch(VIEW).stage_starts(stages, 20) == (0, 2, 4)


def test_rates_are_left_alone_unless_asked_for():
    assert policy().watch(VIEW).rate_scales(0, 10) == {}


def test_each_module_learns_slower_than_the_one_above_it():
    scales = policy(rate_factor=2.6).watch(VIEW).rate_scales(3, 10)
    assert scales == pytest.approx({"head": 1, "body": 1 / 2.6, "stem": 1 / 2.6**2})


def test_rates_rise_and_fall_within_the_round():
    step = policy(rates="slanted-triangular", cut_share=0.1).watch(VIEW)
    scales = [step.rate_scales(at, 100)["stem"] for at in (0, 5, 10, 55, 99)]
    # p = 0, 1/2, 1, 1/2 and 1/90 in (1 + 31 p) / 32
    assert scales == pytest.approx([1 / 32, 16.5 / 32, 1, 16.5 / 32, (1 + 31 / 90) / 32])


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_rates_of_a_short_round_stay_between_the_lowest_and_the_highest(steps):
    rates = [slanted_triangular(at, steps, cut_share=0.1, ratio=32) for at in range(steps)]
    assert all(1 / 32 <= rate <= 1 for rate in rates)
    assert max(rates) == 1
