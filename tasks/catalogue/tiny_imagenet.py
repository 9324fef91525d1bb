"""Two hundred kinds of things in 64x64 colour images (Stanford's CS231n, from ImageNet)."""

from __future__ import annotations

from tasks.datasets.tiny_imagenet import DOWNLOADS, SIDE, tiny_imagenet
from tasks.datasets.tiny_imagenet_classes import CLASSES
from tasks.inputs import Images
from tasks.preparation.augmentation import FlipAndCrop
from tasks.preparation.images import Normalise
from tasks.task import Task

task = Task(
    name="tiny-imagenet",
    inputs=Images(channels=3, side=SIDE),
    read=tiny_imagenet,
    model="fedbug-cnn-6",
    labels=tuple(CLASSES.values()),
    # Of the training pixels.
    preprocessing=Normalise(mean=(0.4802, 0.4481, 0.3975), std=(0.2770, 0.2691, 0.2821)),
    # FedBug mirrors these images but does not crop them.
    augmentation=FlipAndCrop(flip=True, padding=0),
)

downloads = DOWNLOADS
