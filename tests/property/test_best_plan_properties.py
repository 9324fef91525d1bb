"""The plan against every set of layers, sized up one by one with the formulas of costs."""

import pytest

from experiments.devices.brute_force import brute_force, planned
from experiments.devices.random_cases import random_case
from strategies.planner import fit


@pytest.mark.parametrize("block", range(10))
def test_a_plan_is_the_best_of_all_sets_of_layers(block):
    outcomes = []
    for seed in range(100 * block, 100 * block + 100):
        case = random_case(seed)
        expected = brute_force(**case)
        assert planned(fit, case) == expected, f"seed {seed}"
        outcomes.append(expected)
    # The cases are neither all impossible nor all trivial.
    assert 1 < outcomes.count(None) < 45
    assert sum(o is not None and len(o.trained) > 2 for o in outcomes) > 15


@pytest.mark.parametrize("seed", range(10_000, 10_010))
def test_a_plan_is_the_best_of_all_sets_of_twelve_layers(seed):
    case = random_case(seed, layers=12)
    assert planned(fit, case) == brute_force(**case)
