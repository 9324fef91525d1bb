"""Spoken digits, by speaker: keyword spotting with ten words (Free Spoken Digits)."""

from __future__ import annotations

import torch

from tasks.datasets.spoken_digits import LABELS, RATE, SAMPLES, spoken_digits
from tasks.inputs import Values
from tasks.preparation.log_mel import LogMel
from tasks.task import Task

task = Task(
    name="spoken-digits",
    inputs=Values((SAMPLES,), torch.int16),
    read=spoken_digits,
    model="speech-gru",
    labels=LABELS,
    preprocessing=LogMel(rate=RATE),
)
