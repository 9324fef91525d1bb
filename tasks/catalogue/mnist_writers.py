"""Handwritten digits, 28x28 and grey, by the person who wrote them (MNIST with QMNIST's records).

Digits are never mirrored, so there is no augmentation.
"""

from __future__ import annotations

from tasks.datasets.mnist_writers import DOWNLOADS, LABELS, SIDE, mnist_writers
from tasks.inputs import Images
from tasks.preparation.images import Normalise
from tasks.task import Task

task = Task(
    name="mnist-writers",
    inputs=Images(channels=1, side=SIDE),
    read=mnist_writers,
    model="fashion-cnn",
    labels=LABELS,
    # Of the training pixels.
    preprocessing=Normalise(mean=(0.1307,), std=(0.3081,)),
)

downloads = DOWNLOADS
