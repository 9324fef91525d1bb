"""News on four topics (AG News; Zhang et al., 2015)."""

from __future__ import annotations

from tasks.datasets.ag_news import LABELS, ag_news
from tasks.datasets.texts import Tokenised, Words
from tasks.inputs import Tokens
from tasks.task import Task

_WORDS = Words(size=20_000, length=64)

task = Task(
    name="ag-news",
    inputs=Tokens(_WORDS.size, _WORDS.length),
    read=Tokenised(ag_news, _WORDS),
    model="gru-text",
    labels=LABELS,
)
