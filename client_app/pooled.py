"""Training on what all clients hold together: the ceiling that a federated run is held against.

Same model, same initial weights, same ``[local]`` settings; but one optimizer lives from the first
step to the last, every step sees examples of all clients, and nothing is frozen, cut or lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm

from client_app.optimizer import optimizer_of
from client_app.training import batches
from fedfreeze.errors import ConfigError, RunError
from fedfreeze.layout import Arrays
from fedfreeze.wall_clock import SystemClock, WallClock
from strategies.schedule import learning_rate
from strategies.tables import Local
from tasks.dataset import Examples
from tasks.partition import Split
from tasks.task import Task, load_arrays

# Streams of one seed that must not share numbers: the order of examples, and their augmentation.
_ORDER, _AUGMENTATION = 0, 1


@dataclass(frozen=True)
class Epoch:
    """One pass over the pooled examples.

    Attributes:
        number: from 1.
        learning_rate: in this epoch.
        loss: mean over the examples, as they were seen.
        train_s: measured wall-clock seconds.
        arrays: every tensor of the model after it.
    """

    number: int
    learning_rate: float
    loss: float
    train_s: float
    arrays: dict[str, NDArray[Any]]


def pooled_examples(task: Task, split: Split, data_dir: str | None) -> Examples:
    """What all clients hold together: the training half without the server's validation share.

    A task that divides its data by itself has its validation examples elsewhere.

    Raises:
        ConfigError: nothing is left.
    """
    data = task.dataset(data_dir).train
    if task.divided_by:
        return data
    positions = split.pooled(np.asarray(data.targets))
    if not len(positions):
        raise ConfigError(
            f"expected training examples, got none of {len(data)} beside the validation share; "
            "lower data.validation-share"
        )
    return data.at(positions)


def rate_of(local: Local, number: int, epochs: int) -> float:
    """The learning rate of epoch ``number`` of ``epochs``.

    It is that of the round in which a client of a run of as many epochs makes this pass: with
    ``local.epochs`` = 2, epochs 1 and 2 have the rate of round 1.

    >>> steps = Local(epochs=2, learning_rate=1.0, schedule="step", step_rounds=1, step_factor=0.5)
    >>> [rate_of(steps, number, 5) for number in (1, 2, 3, 4, 5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    return learning_rate(local, math.ceil(number / local.epochs), math.ceil(epochs / local.epochs))


def train_pooled(
    task: Task,
    initial: Arrays,
    examples: Examples,
    *,
    local: Local,
    epochs: int,
    seed: int,
    device: torch.device,
    clock: WallClock | None = None,
) -> Iterator[Epoch]:
    """Train the whole model, an epoch for each step of the iterator.

    torch's global random state is seeded at the start of each epoch, so that what the caller does
    between two of them changes nothing.

    Raises:
        RunError: the loss left the finite numbers.
    """
    clock = clock or SystemClock()
    model = task.build().to(device)
    load_arrays(model, initial)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = optimizer_of([parameters], local, local.learning_rate)
    least = 2 if any(isinstance(m, BatchNorm) for m in model.modules()) else 1
    inputs, targets = examples.inputs.to(device), examples.targets.to(device)
    order = np.random.default_rng([seed, _ORDER])
    chance = np.random.default_rng([seed, _AUGMENTATION])
    prepare = task.prepare
    for number in range(1, epochs + 1):
        begin_s = clock.now()
        torch.manual_seed(int(np.random.default_rng([seed, number]).integers(2**63)))
        rate = rate_of(local, number, epochs)
        for group in optimizer.param_groups:
            group["lr"] = rate
        model.train()
        permutation = torch.from_numpy(order.permutation(len(examples))).to(device)
        loss_sum = 0.0
        for chosen in batches(permutation, local.batch_size, at_least=least):
            optimizer.zero_grad(set_to_none=True)
            batch = prepare(task.augmented(inputs[chosen], chance))
            loss = task.loss(model(batch), targets[chosen])
            if not torch.isfinite(loss):
                raise RunError(
                    f"pooled training diverged in epoch {number}: the loss is {loss.item()}; lower "
                    "local.learning-rate, lengthen local.warm-up-rounds or set local.clip-norm"
                )
            loss.backward()  # type: ignore[no-untyped-call]
            if local.clip_norm is not None:
                nn.utils.clip_grad_norm_(parameters, local.clip_norm)
            optimizer.step()
            loss_sum += loss.item() * len(chosen)
        state = model.state_dict()
        yield Epoch(
            number,
            rate,
            loss_sum / len(examples),
            clock.now() - begin_s,
            {name: state[name].cpu().numpy().copy() for name in initial},
        )
