"""Sentiment of films, tweets and Amazon reviews: three domains rated alike (Hutto & Gilbert, 2014).

From the paper on VADER (ICWSM 2014), https://github.com/cjhutto/vaderSentiment, MIT: short texts,
each with the mean rating of twenty people from -4 (most negative) to +4.

A text above 0 is positive, below 0 negative; those at exactly 0 are left out (139 of 18,513). Most
are close calls of people, not of machines: nothing else is left out. About a fifth is the test
half, by a hash that depends on no seed: of the review that a sentence of an Amazon review belongs
to, so that no review is in both halves; else of the text, so that no copies are.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np

from fedfreeze.errors import StateError
from tasks.datasets.texts import Texts, TextSet, fields, read_lines
from tasks.sources import Place, missing

LABELS = ("negative", "positive")
DOMAINS = ("films", "tweets", "amazon")
_FILES = {
    "films": "movieReviewSnippets_GroundTruth.txt",
    "tweets": "tweets_GroundTruth.txt",
    "amazon": "amazonReviewSnippets_GroundTruth.txt",
}
# Some copies of the files have it before their names.
_PREFIX = "vader_"
# Of 256 values of the hash's first byte.
_TEST_VALUES = 51
_LARGEST_SCORE = 4.0

Row = tuple[str, int, int]  # text, class, domain


def sentiment(place: Place) -> TextSet:
    """All three domains from the folder ``sentiment``; the domain is the group.

    Raises:
        ConfigError: there is no such folder.
        StateError: a file is missing, torn or not what it should be.
    """
    candidates = ["sentiment"]
    folder = place.find("sentiment domains", candidates)
    if folder is None:
        raise missing(
            "the sentiment data set",
            candidates,
            "its three files *_GroundTruth.txt are in hutto_ICWSM_2014.tar.gz of "
            "https://github.com/cjhutto/vaderSentiment, folder additional_resources",
        )
    train: list[Row] = []
    test: list[Row] = []
    for domain, name in enumerate(DOMAINS):
        file = folder / _FILES[name]
        prefixed = file.with_name(_PREFIX + file.name)
        for key, row in _rows(prefixed if prefixed.is_file() else file, domain):
            (test if is_test(key) else train).append(row)
    return TextSet(folder, _half(train), _half(test), group="domain")


def is_test(key: str) -> bool:
    """Whether texts of that key are in the test half."""
    return hashlib.sha256(key.encode()).digest()[0] < _TEST_VALUES


def _rows(path: Path, domain: int) -> list[tuple[str, Row]]:
    rows = []
    for number, line in read_lines(path):
        name, score, text = fields(path, number, line, ("id", "score", "text"))
        value = _score(path, number, score)
        if value:
            # Amazon's ids are REVIEW_SENTENCE.
            key = f"amazon/{name.split('_')[0]}" if "_" in name else text.strip().lower()
            rows.append((key, (text, int(value > 0), domain)))
    return rows


def _score(path: Path, number: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= _LARGEST_SCORE:
        raise StateError(
            f'{path}:{number}: expected a score from -4 to 4, got "{text[:40]}"; '
            "is this another data set?"
        )
    return value


def _half(rows: list[Row]) -> Texts:
    return Texts(
        texts=tuple(text for text, _, _ in rows),
        classes=tuple(label for _, label, _ in rows),
        groups=np.array([domain for _, _, domain in rows], np.int64),
    )
