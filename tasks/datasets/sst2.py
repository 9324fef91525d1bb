"""SST-2, from GLUE: is a sentence about a film positive (Socher et al., 2013)?"""

from __future__ import annotations

from pathlib import Path

from fedfreeze.errors import StateError
from tasks.datasets.parquet import needed_parts, parts_of
from tasks.datasets.texts import Texts, TextSet, class_of, fields, from_parquet, read_lines
from tasks.sources import Place, missing

LABELS = ("negative", "positive")
_HEADER = "sentence\tlabel"


def sst2(place: Place) -> TextSet:
    """``train.tsv``, and ``dev.tsv`` as the test half: GLUE keeps the test labels to itself.

    In Hugging Face's parquet files the halves are called train and validation.

    Raises:
        ConfigError: there is no such folder, or pyarrow is not installed.
        StateError: a file is torn or not what it should be.
    """
    candidates = ["SST-2", "sst2"]
    folder = place.find("SST-2", candidates)
    if folder is None:
        raise missing(
            "SST-2",
            candidates,
            "it is the SST-2.zip of https://gluebenchmark.com/tasks, or stanfordnlp/sst2 of "
            "Hugging Face",
        )
    if train := parts_of(folder, "train"):
        held_out = needed_parts(folder, "validation")
        return TextSet(folder, _parquet(train), _parquet(held_out))
    return TextSet(folder, _half(folder / "train.tsv"), _half(folder / "dev.tsv"))


def _parquet(paths: tuple[Path, ...]) -> Texts:
    return from_parquet(paths, "sentence", "label", LABELS)


def _half(path: Path) -> Texts:
    texts, classes = [], []
    for number, line in read_lines(path):
        if number == 1:
            if line != _HEADER:
                raise StateError(
                    f'{path}: expected the first line "sentence TAB label", got "{line[:40]}"; '
                    "is this another data set?"
                )
            continue
        text, label = fields(path, number, line, ("sentence", "label"))
        classes.append(class_of(path, number, label, ("0", "1")))
        texts.append(text)
    return Texts(tuple(texts), tuple(classes))
