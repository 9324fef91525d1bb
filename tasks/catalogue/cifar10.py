"""Ten kinds of animals and vehicles in 32x32 colour images (Krizhevsky, 2009)."""

from __future__ import annotations

from tasks.datasets.cifar import DOWNLOADS_10, LABELS_10, SIDE, cifar10
from tasks.inputs import Images
from tasks.preparation.augmentation import FlipAndCrop
from tasks.preparation.images import Normalise
from tasks.task import Task

task = Task(
    name="cifar10",
    inputs=Images(channels=3, side=SIDE),
    read=cifar10,
    model="fedbug-cnn",
    labels=LABELS_10,
    # Of the training pixels.
    preprocessing=Normalise(mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)),
    augmentation=FlipAndCrop(flip=True, padding=4),
)

downloads = DOWNLOADS_10
