"""Words as numbers: a tokeniser whose vocabulary is learnt from the training half.

The vocabulary is part of what a run learns from data, and in a federation all must number words
alike. Where every node reads the published training half, each builds the same one. Nodes that
hold only texts of their own need the file ``vocabulary.json`` (see :mod:`tasks.datasets.texts`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from fedfreeze.errors import StateError

PAD, UNKNOWN = 0, 1
_RESERVED = 2

# Runs of letters and digits with apostrophes inside, or a run of one mark such as "!!" or ":".
_WORD = re.compile(r"\w+(?:['’]\w+)*|([^\w\s])\1*")  # noqa: RUF001  # typographic apostrophe
# A file larger than this is no vocabulary.
_MOST_BYTES = 64 * 2**20


def words(text: str) -> list[str]:
    """Lower-cased words and marks, in order.

    >>> words("Don't PANIC -- it's 42!!!")
    ["don't", 'panic', '--', "it's", '42', '!!!']
    """
    return [match[0] for match in _WORD.finditer(text.lower())]


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their numbers; the first one is number 2.

    0 pads the end of a text, 1 stands for every word that is not among them.
    """

    words: tuple[str, ...]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, _RESERVED)}

    def encode(self, texts: Sequence[str], length: int) -> Tensor:
        """The first ``length`` words of each text: ``int64[n, length]``.

        >>> Vocabulary(("to", "be")).encode(["To be or not", "be"], 3).tolist()
        [[2, 3, 1], [3, 0, 0]]
        """
        encoded = torch.full((len(texts), length), PAD)
        for row, text in zip(encoded, texts, strict=True):
            numbers = [self._numbers.get(word, UNKNOWN) for word in words(text)[:length]]
            row[: len(numbers)] = torch.tensor(numbers, dtype=torch.int64)
        return encoded

    def write(self, path: Path) -> None:
        """As a JSON list, for nodes that cannot build the same one themselves."""
        path.write_text(json.dumps(self.words, ensure_ascii=False, indent=0) + "\n", "utf-8")


def learn(texts: Iterable[str], size: int) -> Vocabulary:
    """The most frequent words, ``size`` numbers in all; of equals those first in the alphabet.

    >>> learn(["b b a", "c a b"], size=4).words
    ('b', 'a')
    """
    counts = Counter(word for text in texts for word in words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary(tuple(ranked[: size - _RESERVED]))


def read_vocabulary(path: Path, size: int) -> Vocabulary:
    """A vocabulary that :meth:`Vocabulary.write` wrote.

    Raises:
        StateError: it is none, or holds too many words for the model.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise StateError(f"{path}: expected at most {_MOST_BYTES} bytes")
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StateError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise StateError(f"{path}: expected a JSON list of words")
    if len(set(found)) < len(found) or len(found) > size - _RESERVED:
        raise StateError(
            f"{path}: expected at most {size - _RESERVED} different words, got {len(found)} of "
            f"which {len(set(found))} differ"
        )
    return Vocabulary(tuple(found))
