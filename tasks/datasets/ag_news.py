"""AG News: headlines and first sentences of news on four topics (Zhang et al., 2015)."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

from fedfreeze.errors import StateError
from tasks.datasets.parquet import needed_parts, parts_of
from tasks.datasets.texts import Texts, TextSet, class_of, from_parquet, read_text
from tasks.sources import Place, missing

LABELS = ("world", "sports", "business", "science and technology")
# Classes are counted from 1 in the file.
_NUMBERS = ("1", "2", "3", "4")
_COLUMNS = 3  # class, title, description


def ag_news(place: Place) -> TextSet:
    """Both halves from ``train.csv`` and ``test.csv`` as published, or from parquet files.

    The columns are class, title, description; Hugging Face's are text, label. A backslash stands
    for the end of a line within a description; it becomes a space.

    Raises:
        ConfigError: there is no such folder, or pyarrow is not installed.
        StateError: a file is torn or not what it should be.
    """
    candidates = ["ag_news_csv", "ag_news"]
    folder = place.find("AG News", candidates)
    if folder is None:
        raise missing(
            "AG News",
            candidates,
            "it is the ag_news_csv of Zhang et al. (2015), or fancyzhx/ag_news of Hugging Face",
        )
    if train := parts_of(folder, "train"):
        return TextSet(folder, _parquet(train), _parquet(needed_parts(folder, "test")))
    return TextSet(folder, _half(folder / "train.csv"), _half(folder / "test.csv"))


def _parquet(paths: tuple[Path, ...]) -> Texts:
    found = from_parquet(paths, "text", "label", LABELS)
    return replace(found, texts=tuple(text.replace("\\", " ") for text in found.texts))


def _half(path: Path) -> Texts:
    texts, classes = [], []
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        for row in reader:
            number = reader.line_num
            if not row:  # an empty line
                continue
            if len(row) != _COLUMNS:
                raise StateError(
                    f"{path}:{number}: expected class, title, description, got {len(row)} columns; "
                    "is this another data set?"
                )
            label, title, description = row
            classes.append(class_of(path, number, label, _NUMBERS))
            texts.append(f"{title} {description}".replace("\\", " "))
    except csv.Error as error:
        raise StateError(f"{path}:{reader.line_num}: cannot be read: {error}") from error
    return Texts(tuple(texts), tuple(classes))
