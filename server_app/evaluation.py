"""Evaluating the published model on the server's own data."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedfreeze.layout import Arrays
from tasks.task import Examples, Task, load_arrays

BATCH = 256


@dataclass(frozen=True)
class Score:
    """Mean loss and mean score (accuracy, unless the task says otherwise) over the examples."""

    loss: float
    score: float


def evaluate(task: Task, arrays: Arrays, examples: Examples) -> Score:
    """Loss and score of the model that ``arrays`` describe, in eval mode, without gradients."""
    with torch.random.fork_rng(devices=[]):
        model = task.build()
    load_arrays(model, arrays)
    model.eval()
    loss = score = 0.0
    with torch.no_grad():
        for inputs, targets in zip(
            torch.split(examples.inputs, BATCH), torch.split(examples.targets, BATCH), strict=True
        ):
            outputs = model(inputs)
            loss += float(task.loss(outputs, targets)) * len(targets)
            score += task.score(outputs, targets)
    return Score(loss / len(examples), score / len(examples))
