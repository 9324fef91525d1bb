"""Evaluating the published model on the server's own data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfreeze.errors import ConfigError
from fedfreeze.layout import Arrays
from tasks.dataset import Examples
from tasks.task import Task, load_arrays

BATCH = 256


@dataclass(frozen=True)
class Score:
    """How well a model does on a set of examples.

    Attributes:
        loss: mean over the examples.
        values: each of the task's metrics by name, the headline first.
    """

    loss: float
    values: Mapping[str, float]

    @property
    def headline(self) -> float:
        """The value of the task's first metric."""
        return next(iter(self.values.values()))


def evaluate(task: Task, arrays: Arrays, examples: Examples) -> Score:
    """Loss and metrics of the model that ``arrays`` describe."""
    return score(task, predict(task, arrays, examples.inputs), examples.targets)


def predict(task: Task, arrays: Arrays, inputs: Tensor) -> Tensor:
    """Outputs ``[n, ...]`` of the model that ``arrays`` describe, in eval mode, batch by batch.

    Args:
        task: its model and preprocessing.
        arrays: every tensor of the model.
        inputs: raw ones; only a batch at a time is prepared.

    Raises:
        ConfigError: there are none.
    """
    if not len(inputs):
        raise ConfigError(
            f'task "{task.name}": expected examples to evaluate on, got none; raise '
            "data.validation-share, or see that the task has a test half"
        )
    with torch.random.fork_rng(devices=[]):
        model = task.build()
    load_arrays(model, arrays)
    model.eval()
    prepare = task.prepare
    with torch.no_grad():
        # Copies: a model may begin with an operation in place, and the inputs are used again.
        return torch.cat([model(prepare(batch.clone())) for batch in torch.split(inputs, BATCH)])


def score(task: Task, outputs: Tensor, targets: Tensor) -> Score:
    """Loss and metrics of outputs that are there already.

    The loss is that of batches, each weighed by what it holds, so that a last bit does not depend
    on how many examples there are beside it.
    """
    loss = sum(
        float(task.loss(some, wanted)) * len(wanted)
        for some, wanted in zip(
            torch.split(outputs, BATCH), torch.split(targets, BATCH), strict=True
        )
    )
    values = {metric.name: metric.measure(outputs, targets) for metric in task.metrics}
    return Score(loss / len(targets), values)
