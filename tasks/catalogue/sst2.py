"""Is a sentence about a film positive? (SST-2; Socher et al., 2013)."""

from __future__ import annotations

from tasks.datasets.sst2 import LABELS, sst2
from tasks.datasets.texts import Tokenised, Words
from tasks.inputs import Tokens
from tasks.task import Task

_WORDS = Words(size=12_000, length=48)

task = Task(
    name="sst2",
    inputs=Tokens(_WORDS.size, _WORDS.length),
    read=Tokenised(sst2, _WORDS),
    model="text-transformer",
    labels=LABELS,
)
