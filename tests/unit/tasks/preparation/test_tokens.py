"""Words as numbers."""

import json

import pytest

from fedfreeze.errors import StateError
from tasks.preparation.tokens import PAD, UNKNOWN, Vocabulary, learn, read_vocabulary, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n", []),
        ("The CAT sat.", ["the", "cat", "sat", "."]),
        ("it's O’Neill's", ["it's", "o’neill's"]),  # noqa: RUF001
        ("'quoted'", ["'", "quoted", "'"]),
        ("so good!!! :))", ["so", "good", "!!!", ":", "))"]),
        ("3.5 u.s.", ["3", ".", "5", "u", ".", "s", "."]),
        ("naïve 東京", ["naïve", "東京"]),
    ],
)
def test_words_are_lower_cased_runs_of_letters_and_marks_stand_alone(text, expected):
    assert words(text) == expected


def test_the_most_frequent_words_are_kept_and_ties_go_by_the_alphabet():
    texts = ["c b a", "c d", "c b"]  # c 3, b 2, a 1, d 1
    assert learn(texts, size=5).words == ("c", "b", "a")
    assert learn(reversed(texts), size=5).words == ("c", "b", "a")


def test_a_small_set_of_texts_leaves_numbers_unused():
    assert learn(["one two"], size=100).words == ("one", "two")


def test_texts_become_numbers_padded_or_cut_to_one_length():
    vocabulary = Vocabulary(("good", "film"))
    encoded = vocabulary.encode(["A good film", "film film good good", ""], 3)
    assert encoded.tolist() == [[UNKNOWN, 2, 3], [3, 3, 2], [PAD, PAD, PAD]]


def test_a_written_vocabulary_is_read_back(tmp_path):
    vocabulary = Vocabulary(("naïve", '"', "東京"))
    vocabulary.write(tmp_path / "vocabulary.json")
    assert read_vocabulary(tmp_path / "vocabulary.json", size=5) == vocabulary


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": 2}, "expected a JSON list of words"),
        (["a", 3], "expected a JSON list of words"),
        (["a", "a"], "expected at most 3 different words, got 2 of which 1 differ"),
        (list("abcd"), "expected at most 3 different words, got 4 of which 4 differ"),
    ],
)
def test_a_file_that_is_no_vocabulary_of_that_size_is_refused(tmp_path, content, message):
    file = tmp_path / "vocabulary.json"
    file.write_text(json.dumps(content))
    with pytest.raises(StateError) as caught:
        read_vocabulary(file, size=5)
    assert str(caught.value) == f"{file}: {message}"


@pytest.mark.parametrize("content", [b"", b"[", b"\xff\xfe", b"[" * 100_000])
def test_a_torn_vocabulary_is_refused(tmp_path, content):
    file = tmp_path / "vocabulary.json"
    file.write_bytes(content)
    with pytest.raises(StateError) as caught:
        read_vocabulary(file, size=5)
    assert str(caught.value).startswith(f"{file}: cannot be read: ")
