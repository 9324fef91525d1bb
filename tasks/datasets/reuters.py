"""Reuters R8: news of 1987 on eight topics, half of it on earnings (Lewis, 1997; Cardoso-Cachopo).

The eight classes of Reuters-21578 with most texts of a single topic, in its "ModApte" division:
5,485 training and 2,189 test texts, lower-cased and without punctuation, published at
https://ana.cachopo.org/datasets-for-single-label-text-categorization.
"""

from __future__ import annotations

from pathlib import Path

from tasks.datasets.texts import Texts, TextSet, class_of, fields, read_lines
from tasks.sources import Place, missing

LABELS = ("acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade")
# Orange's names of columns; two more lines give their types and which one is the class.
_HEADER, _HEADER_LINES = "Category\tText", 3


def reuters_r8(place: Place) -> TextSet:
    """Both halves from the folder ``reuters-r8``: as published, or in the form of the suite Orange.

    Published are ``r8-{train,test}-all-terms.txt``: lines of class, tab, text. Orange's are
    ``reuters-r8-{train,test}.tab``, gzipped or plain: three lines of header before the same.

    Raises:
        ConfigError: there are no such files.
        StateError: a file is torn or not what it should be.
    """
    candidates = [
        "reuters-r8/r8-train-all-terms.txt",
        "reuters-r8/reuters-r8-train.tab.gz",
        "reuters-r8/reuters-r8-train.tab",
    ]
    train = place.find("Reuters R8", candidates)
    if train is None:
        raise missing(
            "Reuters R8",
            candidates,
            "https://ana.cachopo.org/datasets-for-single-label-text-categorization has both halves",
        )
    test = train.with_name(train.name.replace("train", "test"))
    return TextSet(train.parent, _half(train), _half(test))


def _half(path: Path) -> Texts:
    texts, classes, header = [], [], 0
    for number, line in read_lines(path):
        if number == 1 and line == _HEADER:
            header = _HEADER_LINES
        if number > header:
            label, text = fields(path, number, line, ("class", "text"))
            classes.append(class_of(path, number, label, LABELS))
            texts.append(text)
    return Texts(tuple(texts), tuple(classes))
