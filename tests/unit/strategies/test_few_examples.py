import math

import pytest

from strategies.few_examples import FewExamples


@pytest.mark.parametrize("examples", [1, 49, 50, 51, 10**6])
def test_plain_treats_everybody_alike(examples):
    rule = FewExamples("plain", 50)
    assert (rule.weight(examples), rule.fineness(examples)) == (examples, 1.0)


@pytest.mark.parametrize(
    ("examples", "weight"), [(1, 0.02), (10, 2), (25, 12.5), (50, 50), (90, 90)]
)
def test_a_damped_weight_grows_with_the_square_of_the_examples_up_to_n_min(examples, weight):
    rule = FewExamples("damped-weight", 50)
    assert rule.weight(examples) == weight
    assert rule.fineness(examples) == 1.0


@pytest.mark.parametrize(
    ("examples", "fineness"), [(64, 1), (63, math.sqrt(64 / 63)), (16, 2), (4, 4), (3, 4), (1, 4)]
)
def test_a_finer_step_goes_with_the_root_of_the_lack_up_to_4(examples, fineness):
    rule = FewExamples("finer-step", 64)
    assert rule.fineness(examples) == fineness
    assert rule.weight(examples) == examples
