"""A task of random 32x32 images, for measuring whole rounds of models of any size."""

from __future__ import annotations

import torch

from tasks.dataset import Dataset, Examples
from tasks.inputs import Images
from tasks.preparation.images import Normalise
from tasks.sources import Place
from tasks.task import Task

COUNT = 64


def _read(place: Place) -> Dataset:  # noqa: ARG001  # there is no place
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 256, (2 * COUNT, 3, 32, 32), dtype=torch.uint8, generator=generator)
    targets = torch.arange(2 * COUNT) % 10
    train, test = slice(0, COUNT), slice(COUNT, None)
    return Dataset(
        Examples(inputs[train], targets[train]), Examples(inputs[test], targets[test]), "random"
    )


task = Task(
    name="random-images",
    inputs=Images(3, 32),
    read=_read,
    model="resnet18-gn",
    labels=tuple("abcdefghij"),
    preprocessing=Normalise(mean=(0.5,) * 3, std=(0.25,) * 3),
)
