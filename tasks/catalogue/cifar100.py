"""A hundred kinds of things in 32x32 colour images (Krizhevsky, 2009)."""

from __future__ import annotations

from tasks.datasets.cifar import DOWNLOADS_100, LABELS_100, SIDE, cifar100
from tasks.inputs import Images
from tasks.preparation.augmentation import FlipAndCrop
from tasks.preparation.images import Normalise
from tasks.task import Task

task = Task(
    name="cifar100",
    inputs=Images(channels=3, side=SIDE),
    read=cifar100,
    model="fedbug-cnn",
    labels=LABELS_100,
    # Of the training pixels.
    preprocessing=Normalise(mean=(0.5071, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2762)),
    augmentation=FlipAndCrop(flip=True, padding=4),
)

downloads = DOWNLOADS_100
