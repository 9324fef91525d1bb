"""Training on pooled data, against torch's own steps."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from client_app.pooled import pooled_examples, rate_of, train_pooled
from fedfreeze.errors import ConfigError, RunError
from strategies.tables import Local
from tasks.dataset import Dataset, Examples
from tasks.inputs import Values
from tasks.partition import Split
from tasks.task import Task, initial_arrays
from tests.tiny_task import task as tiny

CPU = torch.device("cpu")
COUNT = 20
INPUTS = torch.arange(40.0).view(COUNT, 2) / 40
TARGETS = torch.arange(COUNT) % 2


def read(place):
    return Dataset(Examples(INPUTS, TARGETS), Examples(INPUTS, TARGETS), "made up")


LINE = Task("line", Values((2,)), read, lambda: nn.Sequential(nn.Linear(2, 2)), labels=("a", "b"))


def trained(task=LINE, *, seed=0, epochs=3, examples=None, **local):
    settings = Local(**{"batch_size": COUNT, "learning_rate": 0.5, **local})
    return [
        *train_pooled(
            task,
            initial_arrays(task, 0),
            examples or task.dataset(None).train,
            local=settings,
            epochs=epochs,
            seed=seed,
            device=CPU,
        )
    ]


def test_one_optimizer_lives_through_all_epochs_and_the_rate_follows_the_schedule():
    """Whole batches, so the order is nothing: v = 0.9 v + g, w -= rate v, with v kept."""
    found = trained(momentum=0.9, schedule="step", step_rounds=1, step_factor=0.5)
    arrays = initial_arrays(LINE, 0)
    weight = torch.from_numpy(arrays["0.weight"].copy())
    bias = torch.from_numpy(arrays["0.bias"].copy())
    speeds = [torch.zeros_like(weight), torch.zeros_like(bias)]
    for epoch, rate in zip(found, (0.5, 0.25, 0.125), strict=True):
        leaves = [value.clone().requires_grad_() for value in (weight, bias)]
        loss = nn.functional.cross_entropy(INPUTS @ leaves[0].T + leaves[1], TARGETS)
        gradients = torch.autograd.grad(loss, leaves)
        speeds = [0.9 * v + g for v, g in zip(speeds, gradients, strict=True)]
        weight, bias = weight - rate * speeds[0], bias - rate * speeds[1]
        assert (epoch.learning_rate, epoch.loss) == (rate, pytest.approx(loss.item(), rel=1e-5))
        assert epoch.arrays["0.weight"] == pytest.approx(weight.numpy(), rel=1e-4, abs=1e-6)
        assert epoch.arrays["0.bias"] == pytest.approx(bias.numpy(), rel=1e-4, abs=1e-6)
    assert [epoch.number for epoch in found] == [1, 2, 3]


def test_the_rate_is_that_of_the_round_in_which_a_client_makes_the_pass():
    local = Local(epochs=3, learning_rate=0.8, warm_up_rounds=2)
    assert [rate_of(local, number, 9) for number in range(1, 10)] == [0.4] * 3 + [0.8] * 6


def bytes_of(epochs):
    return [{name: a.tobytes() for name, a in epoch.arrays.items()} for epoch in epochs]


def test_the_same_seed_gives_the_same_bytes_whatever_happens_between_epochs():
    """The tiny task has dropout and batch statistics; only the seed may matter to them."""
    first = trained(tiny, batch_size=8, learning_rate=0.1)
    again = []
    torch.manual_seed(99)
    for epoch in train_pooled(
        tiny,
        initial_arrays(tiny, 0),
        tiny.dataset(None).train,
        local=Local(batch_size=8, learning_rate=0.1),
        epochs=3,
        seed=0,
        device=CPU,
    ):
        again.append(epoch)
        torch.rand(5)
    assert bytes_of(again) == bytes_of(first)
    assert bytes_of(trained(tiny, batch_size=8, learning_rate=0.1, seed=1)) != bytes_of(first)


def test_an_epoch_sees_every_example_once():
    seen = []

    class Watching:
        def __call__(self, inputs, rng):
            seen.append(inputs)
            return inputs

    task = replace(LINE, augmentation=Watching(), options=replace(LINE.options, augment=True))
    trained(task, epochs=2, batch_size=8)
    first, second = torch.cat(seen[:3]), torch.cat(seen[3:])
    for one in (first, second):
        assert sorted(one[:, 0].tolist()) == INPUTS[:, 0].tolist()
    assert not torch.equal(first, second)


def test_clients_hold_all_but_the_validation_share_together():
    split = Split("iid", 1.0, 0.2, 0)
    held = pooled_examples(LINE, split, None)
    assert len(held) == 16
    apart = torch.cat([LINE.client_examples(c, 4, split, None).inputs for c in range(4)])
    assert sorted(held.inputs[:, 0].tolist()) == sorted(apart[:, 0].tolist())


def test_a_validation_share_that_leaves_nothing_is_refused():
    def one_each(place):
        few = Examples(INPUTS[:2], TARGETS[:2])
        return Dataset(few, few, "made up")

    with pytest.raises(ConfigError) as caught:
        pooled_examples(replace(LINE, read=one_each), Split("iid", 1.0, 0.9, 0), None)
    assert str(caught.value) == (
        "expected training examples, got none of 2 beside the validation share; lower "
        "data.validation-share"
    )


def test_a_loss_that_is_not_finite_ends_training_with_what_to_change():
    broken = Examples(torch.full((4, 2), float("inf")), TARGETS[:4])
    with pytest.raises(RunError) as caught:
        trained(examples=broken)
    assert str(caught.value) == (
        "pooled training diverged in epoch 1: the loss is nan; lower local.learning-rate, "
        "lengthen local.warm-up-rounds or set local.clip-norm"
    )


def test_gradients_are_clipped_as_the_strategy_says():
    step = trained(epochs=1, clip_norm=1e-3, learning_rate=1.0)[0].arrays
    start = initial_arrays(LINE, 0)
    moved = np.sqrt(sum(float(((step[n] - start[n]) ** 2).sum()) for n in start))
    assert moved == pytest.approx(1e-3, rel=1e-2)
