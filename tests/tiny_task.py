"""A task that trains in milliseconds and has what freezing can get wrong.

Named ``tests.tiny_task`` in a strategy. Its layers hold running statistics and their counter
(BatchNorm), normalisation without statistics (GroupNorm), random masks (Dropout) and a scalar
parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from tasks.dataset import Dataset, Examples
from tasks.inputs import Values
from tasks.task import Task

EXAMPLES = 22  # no multiple of the batch size that tests use


class Scale(nn.Module):
    """Multiplies by one trained number."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(1.5))

    def forward(self, values):
        return values * self.factor


class TinyNet(nn.Module):
    """``float32[n, 1, 6, 6]`` to logits ``float32[n, 3]``."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        self.body = nn.Sequential(
            nn.Conv2d(4, 4, 3, bias=False), nn.GroupNorm(2, 4), nn.ReLU(), nn.Dropout(0.3), Scale()
        )
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, 3))

    def forward(self, images):
        return self.head(self.norm(self.body(self.stem(images))).flatten(1))


def layout_of(model, name="tests.tiny_task"):
    """Layers are the direct children; costs are made up but equal on both ends."""
    parameters = {name for name, _ in model.named_parameters()}
    layers = []
    for child in dict(model.named_children()):
        tensors = tuple(
            TensorSpec(
                name,
                tuple(value.shape),
                str(value.numpy().dtype),
                "parameter" if name in parameters else "buffer",
            )
            for name, value in model.state_dict().items()
            if name.startswith(f"{child}.")
        )
        layers.append(Layer(child, tensors, LayerCosts(1e3, 1e3, 1e3, 1e3)))
    return Layout(name, tuple(layers))


@dataclass(frozen=True)
class TinyTask(Task):
    """Each client's examples are random numbers of its own, whatever the split."""

    def layout(self):
        with torch.random.fork_rng(devices=[]):
            return layout_of(self.build(), self.name)

    def client_examples(self, client, clients, split, data_dir):
        return _examples([split.seed, 1, client])

    def validation(self, split, data_dir):
        return _examples([split.seed, 2])


def _examples(seed):
    rng = np.random.default_rng(seed)
    return Examples(
        torch.from_numpy(rng.normal(size=(EXAMPLES, 1, 6, 6)).astype(np.float32)),
        torch.from_numpy(rng.integers(0, 3, EXAMPLES)),
    )


def _read(place):
    return Dataset(_examples([4]), _examples([3]), "random numbers")


task = TinyTask(
    name="tests.tiny_task",
    inputs=Values((1, 6, 6)),
    read=_read,
    model=TinyNet,
    labels=("a", "b", "c"),
)
