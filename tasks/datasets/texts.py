"""Sets of texts before a tokeniser has turned them into numbers, and the step that does so."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from fedfreeze.errors import StateError
from tasks.dataset import Dataset, Examples, Groups
from tasks.datasets.parquet import rows
from tasks.datasets.reading import reading
from tasks.preparation.tokens import Vocabulary, learn, read_vocabulary
from tasks.sources import Place

# Far above the largest set here (SST-2 and AG News: 30 MB); a gzip bomb ends there.
_MOST_BYTES = 512 * 2**20

VOCABULARY = "vocabulary.json"


@dataclass(frozen=True)
class Texts:
    """One half of a set: texts, and for each the number of its class and of its owner."""

    texts: tuple[str, ...]
    classes: tuple[int, ...]
    groups: Groups | None = None


@dataclass(frozen=True)
class TextSet:
    """A set of texts as it was published.

    Attributes:
        folder: where it lies; a tokeniser may look for its own file there.
        train, test: its halves.
        group: what a natural client is; empty if texts have no owner.
    """

    folder: Path
    train: Texts
    test: Texts
    group: str = ""


# Texts to numbers of words, ``int64[n, length]``; 0 pads the end.
Encode = Callable[[tuple[str, ...]], Tensor]


class Tokeniser(Protocol):
    """Finds or learns the vocabulary of a set of texts; hashable."""

    def fit(self, texts: TextSet) -> tuple[Encode, str]:
        """How to encode, and where the vocabulary came from; reads the training half only."""
        ...


@dataclass(frozen=True)
class Words:
    """Whole words, as :mod:`tasks.preparation.tokens` finds them.

    The vocabulary is the file ``vocabulary.json`` in the data set's folder if it is there, else
    what the training half says. ``size`` counts padding and the unknown word.
    """

    size: int
    length: int

    def fit(self, texts: TextSet) -> tuple[Encode, str]:
        """See :class:`Tokeniser`.

        Raises:
            StateError: the file is no vocabulary of that size.
        """
        vocabulary, origin = self.vocabulary(texts)
        return lambda some: vocabulary.encode(some, self.length), origin

    def vocabulary(self, texts: TextSet) -> tuple[Vocabulary, str]:
        """The words, and where they came from.

        Raises:
            StateError: the file is no vocabulary of that size.
        """
        file = texts.folder / VOCABULARY
        if file.is_file():
            return read_vocabulary(file, self.size), VOCABULARY
        return learn(texts.train.texts, self.size), "the training half"


@dataclass(frozen=True)
class Tokenised:
    """A task's ``read``: the texts of one set, as one tokeniser numbers them."""

    read: Callable[[Place], TextSet]
    tokeniser: Tokeniser

    def __call__(self, place: Place) -> Dataset:
        """Inputs ``int64[n, length]``, targets ``int64[n]``.

        Raises:
            ConfigError: the data or the tokeniser's extra is missing.
            StateError: a file is torn.
        """
        found = self.read(place)
        encode, origin = self.tokeniser.fit(found)

        def half(texts: Texts) -> Examples:
            return Examples(encode(texts.texts), torch.tensor(texts.classes, dtype=torch.int64))

        counts = f"{len(found.train.texts)} training and {len(found.test.texts)} test texts"
        return Dataset(
            train=half(found.train),
            test=half(found.test),
            source=f"{found.folder} ({counts}; words from {origin})",
            group=found.group,
            train_groups=found.train.groups,
            test_groups=found.test.groups,
        )


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines, from 1, of a plain or gzipped UTF-8 file, without their ends.

    Lines end at a line feed, with or without a carriage return; other separators of Unicode occur
    within texts. Bytes that are no UTF-8 become the replacement character.

    Raises:
        StateError: it is torn, empty or too large.
    """
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if text := line.removesuffix("\r"):
            yield number, text


def read_text(path: Path) -> str:
    """The content of a plain or gzipped UTF-8 file, without a byte order mark.

    Raises:
        StateError: it is torn, empty or too large.
    """
    with reading(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        raw = file.read(_MOST_BYTES + 1)
    if not raw:
        raise StateError(f"{path}: expected text, the file is empty; fetch it again")
    if len(raw) > _MOST_BYTES:
        raise StateError(f"{path}: expected at most {_MOST_BYTES} bytes of text, got more")
    return raw.decode("utf-8-sig", errors="replace")


def from_parquet(paths: Iterable[Path], text: str, label: str, labels: tuple[str, ...]) -> Texts:
    """One half from parquet files: a column of texts and one of class numbers, from 0.

    Raises:
        ConfigError: pyarrow is not installed.
        StateError: a file is torn, lacks a column, or holds something else in it.
    """
    texts, classes = [], []
    for path in paths:
        for number, (words, named) in enumerate(rows(path, (text, label)), 1):
            if not isinstance(words, str):
                raise StateError(f"{path}: row {number}: expected a text in {text}, got {words!r}")
            known = tuple(map(str, range(len(labels))))
            classes.append(class_of(path, number, str(named), known))
            texts.append(words)
    return Texts(tuple(texts), tuple(classes))


def fields(path: Path, number: int, line: str, names: tuple[str, ...]) -> list[str]:
    """The fields of a line that tabs divide; the last one may hold tabs.

    Raises:
        StateError: there are fewer.
    """
    found = line.split("\t", len(names) - 1)
    if len(found) < len(names):
        raise StateError(
            f"{path}:{number}: expected {' TAB '.join(names)}, got {len(found)} of these; "
            "is this another data set?"
        )
    return found


def class_of(path: Path, number: int, label: str, labels: tuple[str, ...]) -> int:
    """The number of the class of that name.

    Raises:
        StateError: there is no such class.
    """
    if label not in labels:
        raise StateError(
            f'{path}:{number}: expected a class, one of {", ".join(labels)}, got "{label[:40]}"'
        )
    return labels.index(label)
