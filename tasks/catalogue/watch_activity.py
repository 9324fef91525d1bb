"""Seven shoulder exercises felt by a smartwatch, by person (Burns et al., 2018)."""

from __future__ import annotations

import torch

from tasks.datasets.watch_activity import CHANNELS, LABELS, LENGTH, STEPS, watch_activity
from tasks.inputs import Values
from tasks.preparation.sensors import Scale
from tasks.task import Task

# Rounded standard deviations of the training half: acceleration in g, rotation in rad/s.
_SPREAD = (0.9, 0.5, 0.5, 0.9, 2.5, 1.0)

task = Task(
    name="watch-activity",
    inputs=Values((LENGTH, len(CHANNELS)), torch.int16),
    read=watch_activity,
    model="sensor-gru",
    labels=LABELS,
    preprocessing=Scale(tuple(step / spread for step, spread in zip(STEPS, _SPREAD, strict=True))),
)
