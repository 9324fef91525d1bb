"""News on eight topics for a pretrained MiniLM (Reuters R8); reads pieces of words.

A task of its own, not a choice of ``[model]``: a model that reads pieces can do nothing with the
numbers of whole words, nor the other way round. Needs the extra ``text``. Its real weights are used
if the strategy says so: ``[model] pretrained = "hub"``, or a file.
"""

from __future__ import annotations

from tasks.datasets.reuters import LABELS, reuters_r8
from tasks.datasets.texts import Tokenised
from tasks.inputs import Tokens
from tasks.metric import ACCURACY, MACRO_F1
from tasks.preparation.wordpiece import SIZE, WordPiece
from tasks.task import Task

_PIECES = WordPiece(length=128)

task = Task(
    name="reuters-r8-minilm",
    inputs=Tokens(SIZE, _PIECES.length),
    read=Tokenised(reuters_r8, _PIECES),
    model="minilm",
    labels=LABELS,
    metrics=(ACCURACY, MACRO_F1),
)
