"""From texts to data sets, and reading files of text."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from fedfreeze.errors import StateError
from tasks.datasets import texts as module
from tasks.datasets.texts import (
    Texts,
    TextSet,
    Tokenised,
    Words,
    class_of,
    fields,
    read_lines,
    read_text,
)
from tasks.preparation.tokens import UNKNOWN, Vocabulary
from tasks.sources import Place


@pytest.fixture
def some(tmp_path):
    """Three training texts and one test text, with owners."""
    return TextSet(
        tmp_path,
        train=Texts(("good film", "bad film", "film"), (1, 0, 1), np.array([0, 1, 1])),
        test=Texts(("good novel novel novel",), (1,), np.array([1])),
        group="domain",
    )


def test_a_set_of_texts_becomes_numbers_classes_and_owners(some, tmp_path):
    data = Tokenised(lambda place: some, Words(size=10, length=3))(Place())
    # film occurs thrice, bad and good once each.
    assert data.train.inputs.tolist() == [[4, 2, 0], [3, 2, 0], [2, 0, 0]]
    assert data.train.targets.tolist() == [1, 0, 1]
    assert (data.train_groups.tolist(), data.test_groups.tolist()) == ([0, 1, 1], [1])
    assert data.group == "domain"
    assert data.source == f"{tmp_path} (3 training and 1 test texts; words from the training half)"


def test_words_of_the_test_half_are_not_learnt(some):
    data = Tokenised(lambda place: some, Words(size=10, length=3))(Place())
    assert data.test.inputs.tolist() == [[4, UNKNOWN, UNKNOWN]]


def test_a_vocabulary_in_the_folder_goes_before_what_the_texts_say(some, tmp_path):
    Vocabulary(("novel", "good")).write(tmp_path / "vocabulary.json")
    data = Tokenised(lambda place: some, Words(size=10, length=3))(Place())
    assert data.train.inputs.tolist() == [[3, 1, 0], [1, 1, 0], [1, 0, 0]]
    assert data.source.endswith("words from vocabulary.json)")


def test_a_vocabulary_too_large_for_the_task_is_refused(some, tmp_path):
    Vocabulary(("novel", "good")).write(tmp_path / "vocabulary.json")
    with pytest.raises(StateError) as caught:
        Tokenised(lambda place: some, Words(size=3, length=3))(Place())
    assert str(caught.value) == (
        f"{tmp_path}/vocabulary.json: expected at most 1 different words, got 2 of which 2 differ"
    )


def test_equal_readers_are_equal_so_that_a_set_is_read_once():
    def read(place):
        raise AssertionError

    assert hash(Tokenised(read, Words(9, 3))) == hash(Tokenised(read, Words(9, 3)))
    assert Tokenised(read, Words(9, 3)) != Tokenised(read, Words(9, 4))


CONTENT = "one\r\n\ntwo\x85 and \u2028 more\nthree"


@pytest.mark.parametrize(
    ("name", "pack"), [("a.txt", lambda raw: raw), ("a.txt.gz", gzip.compress)]
)
def test_lines_end_at_line_feeds_only_and_keep_their_numbers(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(CONTENT.encode()))
    assert list(read_lines(tmp_path / name)) == [
        (1, "one"),
        (3, "two\x85 and \u2028 more"),
        (4, "three"),
    ]


def test_bytes_that_are_no_text_are_marked(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 noir")
    assert read_text(tmp_path / "a.txt") == "caf\ufffd noir"


def test_a_torn_file_is_refused(tmp_path):
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"text" * 100)[:-9])
    with pytest.raises(StateError) as caught:
        read_text(file)
    assert str(caught.value) == (
        f"{file}: cannot be read: Compressed file ended before the end-of-stream marker was "
        "reached; fetch the file again"
    )


def test_a_file_that_unpacks_without_end_is_cut_short(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 1000)
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(bytes(1001)))
    with pytest.raises(StateError) as caught:
        read_text(file)
    assert str(caught.value) == f"{file}: expected at most 1000 bytes of text, got more"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StateError) as caught:
        read_text(tmp_path / "a.txt")
    assert str(caught.value) == (
        f"{tmp_path}/a.txt: cannot be read: No such file or directory; fetch the file again"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt", b""), ("a.txt.gz", gzip.compress(b"", mtime=0))],
    ids=["plain", "zipped"],
)
def test_a_file_without_text_is_refused(tmp_path, name, content):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(StateError) as caught:
        read_text(file)
    assert str(caught.value) == f"{file}: expected text, the file is empty; fetch it again"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfearn\ttext \xef\xbb\xbf")
    assert read_text(file) == "earn\ttext \ufeff"


def test_the_last_field_of_a_line_may_hold_tabs():
    assert fields(Path("a"), 1, "x\ty\tz", ("id", "text")) == ["x", "y\tz"]


def test_a_line_with_too_few_fields_is_refused():
    with pytest.raises(StateError) as caught:
        fields(Path("a.tsv"), 7, "x\ty", ("id", "score", "text"))
    assert str(caught.value) == (
        "a.tsv:7: expected id TAB score TAB text, got 2 of these; is this another data set?"
    )


def test_a_class_that_is_none_is_refused():
    assert class_of(Path("a.tsv"), 7, "two", ("one", "two")) == 1
    with pytest.raises(StateError) as caught:
        class_of(Path("a.tsv"), 7, "x" * 90, ("one", "two"))
    assert str(caught.value) == (f'a.tsv:7: expected a class, one of one, two, got "{"x" * 40}"')
