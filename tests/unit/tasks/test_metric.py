"""Metrics against values by hand, and against their definitions written out."""

import math

import pytest
import torch

from fedfreeze.errors import ConfigError
from tasks.metric import (
    ACCURACY,
    MACRO_F1,
    MEAN_ABSOLUTE_ERROR,
    R2,
    ROOT_MEAN_SQUARE_ERROR,
)


def logits_for(predicted, classes):
    """Outputs whose largest value is at each prediction."""
    return torch.nn.functional.one_hot(torch.tensor(predicted), classes).double() * 3 - 1


def test_accuracy_is_the_share_of_examples_whose_largest_output_is_their_class():
    assert ACCURACY.measure(logits_for([0, 1, 2, 1], 3), torch.tensor([0, 1, 1, 1])) == 0.75


def test_macro_f1_by_hand():
    """Class 0: P 2/3, R 1, F1 0.8. Class 1: P 1, R 1/2, F1 2/3. Class 2: P 1, R 1, F1 1."""
    predicted, targets = [0, 0, 0, 1, 2], [0, 0, 1, 1, 2]
    found = MACRO_F1.measure(logits_for(predicted, 3), torch.tensor(targets))
    assert found == pytest.approx((0.8 + 2 / 3 + 1) / 3)


def test_a_class_that_is_only_predicted_counts_as_0_and_one_that_never_occurs_not_at_all():
    predicted, targets = [0, 0, 3], [0, 0, 0]
    found = MACRO_F1.measure(logits_for(predicted, 5), torch.tensor(targets))
    assert found == pytest.approx((2 * 1 * (2 / 3) / (1 + 2 / 3) + 0) / 2)


def macro_f1_by_definition(predicted, targets):
    """The mean of 2PR/(P+R) over labels in either list, where 0/0 is 0."""

    def ratio(over, under):
        return over / under if under else 0.0

    scores = []
    for label in sorted({*predicted, *targets}):
        hits = sum(p == t == label for p, t in zip(predicted, targets, strict=True))
        precision, recall = ratio(hits, predicted.count(label)), ratio(hits, targets.count(label))
        scores.append(ratio(2 * precision * recall, precision + recall))
    return sum(scores) / len(scores)


@pytest.mark.parametrize("seed", range(5))
def test_macro_f1_follows_its_definition(seed):
    generator = torch.Generator().manual_seed(seed)
    predicted, targets = (torch.randint(0, 7, (40,), generator=generator) for _ in range(2))
    found = MACRO_F1.measure(logits_for(predicted.tolist(), 7), targets)
    assert found == pytest.approx(macro_f1_by_definition(predicted.tolist(), targets.tolist()))


OUTPUTS, TARGETS = [1.0, 2.0, 4.0, 8.0], [1.0, 3.0, 4.0, 4.0]


@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("target_column", [True, False])
def test_errors_of_numbers_by_hand_in_either_shape(column, target_column):
    """Errors 0, -1, 0, 4; the targets' mean is 3, their squared deviations 4, 0, 1, 1."""
    outputs, targets = torch.tensor(OUTPUTS), torch.tensor(TARGETS)
    outputs = outputs[:, None] if column else outputs
    targets = targets[:, None] if target_column else targets
    assert MEAN_ABSOLUTE_ERROR.measure(outputs, targets) == 1.25
    assert ROOT_MEAN_SQUARE_ERROR.measure(outputs, targets) == pytest.approx(math.sqrt(17 / 4))
    assert R2.measure(outputs, targets) == pytest.approx(1 - 17 / 6)


def test_r2_is_1_for_the_truth_and_0_for_the_mean():
    targets = torch.tensor([[1.0], [2.0], [6.0]])
    assert R2.measure(targets, targets) == 1.0
    assert R2.measure(torch.full((3, 1), 3.0), targets) == 0.0


def test_r2_of_several_columns_is_their_mean():
    targets = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    outputs = torch.stack([targets[:, 0], torch.tensor([2.0, 2.0])], 1)
    assert R2.measure(outputs, targets) == 0.5


def test_r2_of_constant_targets_is_1_if_they_are_met_and_else_0():
    constant = torch.full((3,), 5.0)
    assert R2.measure(constant, constant) == 1.0
    assert R2.measure(constant + 1, constant) == 0.0


def test_which_way_is_better():
    assert [m.higher_is_better for m in (ACCURACY, MACRO_F1, R2)] == [True] * 3
    assert [m.higher_is_better for m in (MEAN_ABSOLUTE_ERROR, ROOT_MEAN_SQUARE_ERROR)] == [
        False
    ] * 2


@pytest.mark.parametrize("metric", [MEAN_ABSOLUTE_ERROR, ROOT_MEAN_SQUARE_ERROR, R2])
def test_a_metric_of_numbers_refuses_the_outputs_of_classes(metric):
    with pytest.raises(ConfigError) as caught:
        metric.measure(torch.zeros(4, 3), torch.zeros(4))
    assert str(caught.value) == (
        "expected as many outputs as targets, got outputs [4, 3] for targets [4]; a metric of "
        "numbers suits no classes"
    )


@pytest.mark.parametrize("metric", [ACCURACY, MACRO_F1])
def test_a_model_that_gives_nan_is_right_nowhere(metric):
    outputs = torch.full((3, 2), float("nan"))
    assert metric.measure(outputs, torch.tensor([0, 0, 1])) == 0
    outputs[2] = torch.tensor([0.0, 1.0])
    assert ACCURACY.measure(outputs, torch.tensor([0, 0, 1])) == pytest.approx(1 / 3)
