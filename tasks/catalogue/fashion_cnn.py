"""The default task: ten kinds of clothing in 28x28 grey images (Xiao et al., 2017)."""

from __future__ import annotations

from tasks.datasets.fashion_mnist import DOWNLOADS, LABELS, SIDE, fashion_mnist
from tasks.inputs import Images
from tasks.preparation.images import Normalise
from tasks.task import Task

task = Task(
    name="fashion-cnn",
    inputs=Images(channels=1, side=SIDE),
    read=fashion_mnist,
    model="fashion-cnn",
    labels=LABELS,
    # Of the training pixels of the whole set.
    preprocessing=Normalise(mean=(0.2860,), std=(0.3530,)),
)

downloads = DOWNLOADS
