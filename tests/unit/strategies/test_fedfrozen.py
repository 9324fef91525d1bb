import numpy as np
import pytest
import torch

from fedfreeze.errors import ConfigError
from strategies.freeze.fedfrozen import FedFrozen, FedFrozenSettings
from strategies.freeze.policy import RoundView
from tests.unit.strategies.samples import client_of, stack

LAYOUT = stack(**{"embed": 5, "b0.qk": 2, "b0.v": 1, "b0.out": 1, "b1.qk": 2, "b1.v": 1, "head": 3})
KERNEL = ("b0.qk", "b1.qk")


def policy(**keys):
    return FedFrozen(FedFrozenSettings(**keys), LAYOUT)


def frozen(number, rounds=10, **keys):
    return policy(**keys).advise(RoundView(number, rounds, 0.1), client_of(LAYOUT)).frozen


@pytest.mark.parametrize(
    ("share", "rounds", "warm_up"), [(0.3, 10, 3), (0.25, 10, 2), (0.0, 10, 0), (1.0, 10, 10)]
)
def test_the_kernel_is_frozen_from_the_round_after_the_warm_up(share, rounds, warm_up):
    frozen_in = [n for n in range(1, rounds + 1) if frozen(n, rounds, warm_up_share=share)]
    assert frozen_in == list(range(warm_up + 1, rounds + 1))


def test_everything_else_trains_on():
    found = frozen(4)
    assert tuple(found) == KERNEL
    assert {reason.code for reason in found.values()} == {"phase"}


def test_in_the_papers_theory_the_value_block_alone_trains_on():
    assert set(LAYOUT.names) - set(frozen(4, active="value-only")) == {"b0.v", "b1.v"}


def gradients(number, **keys):
    """The gradient of each tensor after the hook, where it was 1 everywhere and the value is 3."""
    parameters = {name: torch.full((2,), 3.0, requires_grad=True) for name in LAYOUT.layer_of}
    for parameter in parameters.values():
        parameter.grad = torch.ones(2)
    parameters["b1.v.w"].grad = None
    policy(**keys).watch(RoundView(number, 10, 0.1)).after_backward(parameters)
    return {name: None if p.grad is None else p.grad.tolist()[0] for name, p in parameters.items()}


def test_the_penalty_is_on_the_value_block_alone_and_on_what_trains_in_this_step():
    expected = dict.fromkeys(LAYOUT.layer_of, 1.0) | {"b0.v.w": 2.5, "b1.v.w": None}
    assert gradients(4, penalty=0.5) == expected


def test_the_penalty_waits_for_the_freezing_unless_asked_otherwise():
    assert gradients(3, penalty=0.5)["b0.v.w"] == 1.0
    assert gradients(3, penalty=0.5, penalty_from="start")["b0.v.w"] == 2.5


def test_the_penalty_is_the_gradient_of_half_lambda_times_the_squared_norm():
    value = np.array([0.5, -2.0])
    parameter = torch.tensor(value, requires_grad=True)
    parameter.grad = torch.zeros(2, dtype=torch.float64)
    step = policy(penalty=0.2).watch(RoundView(9, 10, 0.1))
    step.after_backward({"b0.v.w": parameter})
    wiggle = 1e-6
    for at in range(2):
        moved = value + wiggle * np.eye(2)[at]
        slope = 0.5 * 0.2 * ((moved**2).sum() - (value**2).sum()) / wiggle
        assert parameter.grad[at].item() == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"kernel": ["*.attention"]},
            (
                'freeze.kernel: no layer is called "*.attention"; the layers are embed, b0.qk, '
                "b0.v, b0.out, b1.qk, b1.v, head; fedfrozen is for models with attention, such as "
                'model.name = "vit-nano"'
            ),
        ),
        (
            {"value": ["b0.*"]},
            (
                "freeze: expected kernel and value to be different layers, b0.qk is in both; "
                "narrow their globs"
            ),
        ),
    ],
)
def test_blocks_that_the_model_has_not_are_refused(keys, message):
    with pytest.raises(ConfigError) as caught:
        policy(**keys)
    assert str(caught.value) == message
