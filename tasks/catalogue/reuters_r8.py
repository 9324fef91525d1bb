"""News on eight topics, half of it on earnings (Reuters R8); reads whole words."""

from __future__ import annotations

from tasks.datasets.reuters import LABELS, reuters_r8
from tasks.datasets.texts import Tokenised, Words
from tasks.inputs import Tokens
from tasks.metric import ACCURACY, MACRO_F1
from tasks.task import Task

# Nine texts in ten have fewer than 250 words, and news says what matters first.
_WORDS = Words(size=8000, length=128)

task = Task(
    name="reuters-r8",
    inputs=Tokens(_WORDS.size, _WORDS.length),
    read=Tokenised(reuters_r8, _WORDS),
    model="gru-text",
    labels=LABELS,
    metrics=(ACCURACY, MACRO_F1),
)
