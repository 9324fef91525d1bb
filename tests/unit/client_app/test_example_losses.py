import functools

import pytest
import torch
from torch.nn import functional

from client_app.example_losses import squares_of

OUTPUTS = torch.tensor([[2.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
TARGETS = torch.tensor([0, 0, 1])


def softly(outputs, targets):
    """A loss of one's own, which knows no reduction."""
    return functional.cross_entropy(outputs, targets)


def by_hand(outputs, targets):
    logs = torch.log_softmax(outputs.double(), 1)
    return sum(float(logs[at, target]) ** 2 for at, target in enumerate(targets))


@pytest.mark.parametrize("loss", [functional.cross_entropy, softly])
def test_the_squares_are_those_of_the_losses_of_single_examples(loss):
    assert squares_of(loss, OUTPUTS, TARGETS) == pytest.approx(by_hand(OUTPUTS, TARGETS), rel=1e-6)


def test_a_loss_of_several_values_is_their_mean_for_each_example():
    outputs = torch.tensor([[1.0, 3.0], [0.0, 2.0]], requires_grad=True)
    found = squares_of(functional.mse_loss, outputs, torch.zeros(2, 2))
    assert found == pytest.approx(((1 + 9) / 2) ** 2 + (4 / 2) ** 2)
    assert outputs.grad is None


def test_a_loss_with_arguments_of_its_own_keeps_them():
    smooth = functools.partial(functional.cross_entropy, label_smoothing=0.5)
    logs = torch.log_softmax(OUTPUTS.double(), 1)
    expected = sum(
        (0.5 * float(logs[at, target]) + 0.5 * float(logs[at].mean())) ** 2
        for at, target in enumerate(TARGETS)
    )
    assert squares_of(smooth, OUTPUTS, TARGETS) == pytest.approx(expected, rel=1e-6)


def test_a_reduction_that_means_something_else_is_not_relied_on():
    def own(outputs, targets, reduction="mean"):
        return functional.cross_entropy(outputs, targets)

    assert squares_of(own, OUTPUTS, TARGETS) == pytest.approx(by_hand(OUTPUTS, TARGETS), rel=1e-6)
