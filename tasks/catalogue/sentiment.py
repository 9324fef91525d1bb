"""Positive or negative, by domain: films, tweets, Amazon reviews (Hutto & Gilbert, 2014)."""

from __future__ import annotations

from tasks.datasets.sentiment import LABELS, sentiment
from tasks.datasets.texts import Tokenised, Words
from tasks.inputs import Tokens
from tasks.metric import ACCURACY, MACRO_F1
from tasks.task import Task

# 95 texts in a hundred have 36 words or fewer, marks not counted.
_WORDS = Words(size=8000, length=48)

task = Task(
    name="sentiment",
    inputs=Tokens(_WORDS.size, _WORDS.length),
    read=Tokenised(sentiment, _WORDS),
    model="text-transformer",
    labels=LABELS,
    metrics=(ACCURACY, MACRO_F1),
)
