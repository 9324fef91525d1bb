"""How evenly the clients are served, by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedfreeze.errors import ConfigError
from tasks.dataset import Dataset, Examples
from tasks.inputs import Values
from tasks.metric import ACCURACY, MEAN_ABSOLUTE_ERROR, R2
from tasks.partition import Split
from tasks.spread import LabelMixes, Owners, spread, viewpoints
from tasks.task import Task

IID = Split("iid", 1.0, 0.0, 0)
NATURAL = Split("natural", 1.0, 0.0, 0)


def examples(targets):
    return Examples(torch.zeros(len(targets), 2), torch.as_tensor(targets))


def task_of(train, test, *, train_groups=None, test_groups=None, metrics=(ACCURACY,)):
    def read(place):
        return Dataset(
            examples(train),
            examples(test),
            "made up",
            "person",
            None if train_groups is None else np.array(train_groups),
            None if test_groups is None else np.array(test_groups),
        )

    return Task(
        "t", Values((2,)), read, lambda: nn.Linear(2, 3), labels=("a", "b", "c"), metrics=metrics
    )


def says(classes):
    """Outputs that predict these classes."""
    return nn.functional.one_hot(torch.tensor(classes), 3).float()


def test_a_client_is_judged_by_the_accuracy_on_its_classes_in_its_mix():
    """Accuracy 1 on class 0, 1/2 on class 1, 0 on class 2."""
    targets = torch.tensor([0, 0, 1, 1, 2])
    outputs = says([0, 0, 1, 0, 0])
    mixes = LabelMixes(np.array([0, 1, 2]), np.array([[1, 0, 0], [0.25, 0.75, 0], [0, 0.5, 0.5]]))
    assert mixes.per_client(outputs, targets) == pytest.approx([1.0, 0.25 + 0.375, 0.25])


def test_a_mix_like_the_test_halfs_gives_the_accuracy_itself():
    targets = torch.tensor([0, 0, 0, 1, 2, 2])
    outputs = says([0, 1, 0, 1, 0, 2])
    mixes = LabelMixes(np.arange(3), np.array([[3, 1, 2]]) / 6)
    assert mixes.per_client(outputs, targets)[0] == pytest.approx(
        ACCURACY.measure(outputs, targets)
    )


def test_classes_that_the_test_half_lacks_leave_the_mix_and_may_leave_nobody():
    targets = torch.tensor([0, 1])
    outputs = says([0, 0])
    mixes = LabelMixes(np.arange(3), np.array([[0.2, 0.2, 0.6], [0, 0, 1.0]]))
    assert mixes.per_client(outputs, targets).tolist() == [0.5]
    nobody = LabelMixes(np.arange(3), np.array([[0, 0, 1.0]]))
    assert spread(nobody, outputs, targets) == {}


def test_the_mixes_are_those_of_the_training_examples_of_each_client():
    """Shards of sorted classes: each of three clients has one class alone."""
    task = task_of([2, 0, 1, 1, 0, 2], [0, 1, 2])
    seen = viewpoints(task, Split("shards", 1.0, 0.0, 0, shards_per_client=1), 3, None)
    assert sorted(map(tuple, seen.mixes.tolist())) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert seen.classes.tolist() == [0, 1, 2]


def test_under_natural_each_owner_in_the_test_half_is_a_client_also_one_that_never_trained():
    task = task_of([0, 1, 2], [0, 0, 1, 2], train_groups=[1, 2, 3], test_groups=[9, 1, 9, 9])
    seen = viewpoints(task, NATURAL, 3, None)
    assert [members.tolist() for members in seen.members] == [[1], [0, 2, 3]]
    found = spread(seen, says([0, 1, 1, 0]), torch.tensor([0, 0, 1, 2]))
    assert found == {
        "client_accuracy_mean": pytest.approx((0 + 2 / 3) / 2),
        "client_accuracy_worst_tenth": 0.0,
    }


def test_owners_are_clients_only_under_natural():
    task = task_of([0, 1, 2], [0, 0, 1], train_groups=[1, 2, 3], test_groups=[1, 2, 3])
    assert isinstance(viewpoints(task, NATURAL, 3, None), Owners)
    assert isinstance(viewpoints(task, IID, 3, None), LabelMixes)


def test_without_owners_in_the_test_half_natural_clients_are_their_mix_of_classes():
    task = task_of([0, 0, 1], [0, 0, 1], train_groups=[4, 4, 5])
    seen = viewpoints(task, NATURAL, 2, None)
    assert seen.mixes.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(("clients", "worst"), [(1, 1), (9, 1), (10, 1), (11, 2), (30, 3)])
def test_the_worst_tenth_is_rounded_up_to_whole_clients(clients, worst):
    """Client i is right in i of 30 examples."""
    members = tuple(np.arange(30) + 30 * client for client in range(clients))
    targets = torch.zeros(30 * clients, dtype=torch.int64)
    outputs = says([0 if at % 30 < at // 30 else 1 for at in range(30 * clients)])
    found = spread(Owners(ACCURACY, members), outputs, targets)
    assert found["client_accuracy_mean"] == pytest.approx(np.mean(np.arange(clients)) / 30)
    assert found["client_accuracy_worst_tenth"] == pytest.approx(np.mean(np.arange(worst)) / 30)


def test_the_worst_of_an_error_are_the_largest():
    task = task_of(
        [0.0, 1.0],
        [0.0, 0.0, 0.0],
        train_groups=[0, 1],
        test_groups=[0, 1, 1],
        metrics=(MEAN_ABSOLUTE_ERROR, R2),
    )
    seen = viewpoints(task, NATURAL, 2, None)
    found = spread(seen, torch.tensor([[1.0], [2.0], [4.0]]), torch.zeros(3))
    assert found == {
        "client_mean_absolute_error_mean": 2.0,
        "client_mean_absolute_error_worst_tenth": 3.0,
    }


def test_numbers_as_targets_or_other_metrics_without_owners_stand_for_no_client():
    numbers = task_of([0.0, 1.0], [0.0], metrics=(R2,))
    assert viewpoints(numbers, IID, 2, None) is None
    classes = replace(task_of([0, 1], [0]), metrics=(R2,))
    assert viewpoints(classes, IID, 2, None) is None


def test_outputs_of_another_number_of_examples_are_refused():
    with pytest.raises(ConfigError) as caught:
        spread(Owners(ACCURACY, (np.array([0]),)), says([0, 1]), torch.tensor([0]))
    assert str(caught.value) == "expected one output for each test example, got 2 for 1"


def test_a_model_that_gives_nan_serves_no_client():
    seen = viewpoints(task_of([0, 0, 1, 1], [0, 1]), IID, 2, None)
    found = spread(seen, torch.full((2, 2), float("nan")), torch.tensor([0, 1]))
    assert found == {"client_accuracy_mean": 0.0, "client_accuracy_worst_tenth": 0.0}
