"""Trains one plan in this fresh process and prints the peak of its memory in bytes.

Reads ``{"case": ..., "layout": ...}`` from standard input. Everything goes through
``client_app.training.train``; a small model is trained first, so that what libraries load on first
use is in the base. The layout comes from outside: tracing would leave free memory behind that
training then takes.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import torch
from case import Case, task_of
from resident import peak_above
from torch import nn

from client_app.training import Trained, train
from fedfreeze.layout import Arrays, Layout
from fedfreeze.plan import Plan, Reason, Stage
from strategies.local_step import GradientNorms
from strategies.tables import Local
from tasks.dataset import Dataset, Examples
from tasks.inputs import Values
from tasks.sources import Place
from tasks.task import Task

STEPS = 3


def peak_bytes(case: Case, layout: Layout) -> int:
    """Peak resident bytes of local training, above what is there before it."""
    warm_up(case)
    task = task_of(case.model)
    examples = examples_for(task, case.batch_size * STEPS)
    published = initial_model(task, layout)
    return peak_above(lambda: train_case(task, case, layout, published, examples))


def initial_model(task: Task, layout: Layout) -> Arrays:
    """Every tensor of the layout, as the model begins."""
    torch.manual_seed(0)
    return {
        name: np.array(value.numpy())
        for name, value in task.build().state_dict().items()
        if name in layout.tensors
    }


def warm_up(case: Case) -> None:
    """Train a model of a few kilobytes with the same optimizer."""
    task = Task("warm-up", Values((3, 8, 8)), _no_data, _small_model, labels=("a", "b"))
    small = Case("", "full", task.layout().names, 4, case.optimizer)
    published = task.initial(0)[0]
    train_case(task, small, task.layout(), published, examples_for(task, 4 * STEPS))


def train_case(
    task: Task, case: Case, layout: Layout, published: Arrays, examples: Examples
) -> Trained:
    """Train for an epoch, through the code of a board."""
    frozen = set(layout.names) - set(case.trained)
    momentum = 0.9 if case.optimizer == "momentum" else 0.0
    return train(
        task,
        published,
        examples,
        Plan(
            stages=(Stage(1.0, case.trained),),
            epochs=1,
            batch_size=case.batch_size,
            upload_budget_bytes=0,
            frozen={name: Reason("fixed", "") for name in frozen},
        ),
        layout=layout,
        local=Local(optimizer="adam" if case.optimizer == "adam" else "sgd", momentum=momentum),
        learning_rate=1e-4,
        seed=0,
        device=torch.device("cpu"),
        step=GradientNorms(layout.layer_of),
    )


def examples_for(task: Task, count: int) -> Examples:
    """So many, of nothing in particular."""
    generator = np.random.default_rng(0)
    targets = torch.from_numpy(generator.integers(0, len(task.labels), count))
    return Examples(task.inputs.example(count), targets)


def _small_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 2),
    )


def _no_data(place: Place) -> Dataset:
    raise AssertionError(place)


if __name__ == "__main__":
    torch.set_num_threads(1)
    asked = json.load(sys.stdin)
    print(peak_bytes(Case.from_json(asked["case"]), Layout.from_json(asked["layout"])))
