"""Formulas against torch's own counter, which intercepts the operators."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedfreeze.errors import LayoutError
from tasks.flops import forward_flops, weight_grad_flops

CASES = [
    (nn.Linear(7, 5), (3, 7)),
    (nn.Linear(7, 5, bias=False), (3, 11, 7)),
    (nn.Conv1d(4, 6, 3, padding=1), (2, 4, 9)),
    (nn.Conv2d(3, 8, 5, stride=2, padding=2), (2, 3, 13, 9)),
    (nn.Conv2d(8, 12, 3, groups=4), (2, 8, 7, 7)),
    (nn.Conv2d(3, 8, 3, dilation=2), (2, 3, 9, 9)),
    (nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
]


@pytest.mark.parametrize(("module", "shape"), CASES, ids=[str(module) for module, _ in CASES])
def test_the_forward_pass_costs_what_torch_counts(module, shape):
    with FlopCounterMode(display=False) as counter:
        output = module(torch.zeros(shape))
    assert forward_flops(module, "any", output) == counter.get_total_flops()


# Torch's counter is known to miscount the weight gradient of grouped convolutions.
UNGROUPED = [case for case in CASES if getattr(case[0], "groups", 1) == 1]


@pytest.mark.parametrize(("module", "shape"), UNGROUPED, ids=[str(case[0]) for case in UNGROUPED])
def test_both_gradients_cost_what_torch_counts(module, shape):
    output = module(torch.zeros(shape, requires_grad=True))
    with FlopCounterMode(display=False) as counter:
        output.sum().backward()
    weight_grad = weight_grad_flops(module, "any", output)
    assert forward_flops(module, "any", output) + weight_grad == counter.get_total_flops()


@pytest.mark.parametrize("norm", [nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.LayerNorm([4, 5, 5])])
def test_norms_cost_a_few_operations_an_element(norm):
    output = norm(torch.zeros(2, 4, 5, 5))
    assert forward_flops(norm, "any", output) == 8 * 200
    assert weight_grad_flops(norm, "any", output) == 3 * 200


def test_a_module_without_a_formula_is_an_error():
    lstm = nn.LSTM(2, 3)
    with pytest.raises(LayoutError) as caught:
        forward_flops(lstm, "rnn", lstm(torch.zeros(4, 1, 2)))
    assert str(caught.value) == (
        'layer "rnn": no formula for the cost of LSTM; '
        "use convolutions, linear layers and norms, or add one to tasks/flops.py"
    )
