"""Handwritten digits and letters, 28x28 and grey, by writer (Caldas et al., 2018: LEAF)."""

from __future__ import annotations

from tasks.datasets.femnist import LABELS, SIDE, femnist
from tasks.inputs import Images
from tasks.preparation.images import Normalise
from tasks.task import Task

task = Task(
    name="femnist",
    inputs=Images(channels=1, side=SIDE),
    read=femnist,
    model="fashion-cnn",
    labels=LABELS,
    # Paper is white, 255, and fills most of an image: this maps it to 1 and ink to -1.
    preprocessing=Normalise(mean=(0.5,), std=(0.5,)),
)
