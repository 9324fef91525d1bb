"""Sentiment by domain."""

import os
from pathlib import Path

import numpy as np
import pytest

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.sentiment import is_test, sentiment
from tasks.sources import Place

REAL = os.environ.get("FEDFREEZE_TEST_DATA")
FILES = {
    "movieReviewSnippets": "1\t2.5\tGreat fun.\r\n2\t-0.5\tGreat bore.\r\n3\t0\tA film.\r\n",
    "tweets": "1\t-3.2\tlate   again\r\n2\t1e-3\tfine\twith a tab\r\n",
    "amazonReviewSnippets": "12_1\t-0.9\tno picture.\r\n12_2\t1.25\tbut sound.\r\n",
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sentiment").mkdir()
    for name, content in FILES.items():
        (tmp_path / "sentiment" / f"{name}_GroundTruth.txt").write_text(content, newline="")
    return tmp_path


def load(folder):
    return sentiment(Place(folder, demanded=True))


def rows(found):
    """All texts of both halves with class and domain."""
    return {
        (text, label, int(group))
        for half in (found.train, found.test)
        for text, label, group in zip(half.texts, half.classes, half.groups, strict=True)
    }


def test_the_sign_of_the_score_is_the_class_and_zero_is_left_out(folder):
    found = load(folder)
    assert rows(found) == {
        ("Great fun.", 1, 0),
        ("Great bore.", 0, 0),
        ("late   again", 0, 1),
        ("fine\twith a tab", 1, 1),
        ("no picture.", 0, 2),
        ("but sound.", 1, 2),
    }
    assert found.group == "domain"


def test_files_with_a_prefix_are_read_too(folder):
    before = rows(load(folder))
    for path in list((folder / "sentiment").iterdir()):
        path.rename(path.with_name(f"vader_{path.name}"))
    assert rows(load(folder)) == before


def test_the_half_of_a_text_follows_from_the_text_alone():
    # First bytes by the tool sha256sum; those below 51 = 0x33 are in the test half.
    first_bytes = {"abc": 0xBA, "18": 0x4E, "5": 0xEF, "1": 0x6B, "hello": 0x2C}
    assert [key for key in first_bytes if is_test(key)] == ["hello"]


def halves(folder, name, lines):
    """In which halves the texts of each first word of that domain are."""
    (folder / "sentiment" / f"{name}_GroundTruth.txt").write_text("\n".join(lines))
    found, seen = load(folder), {}
    for half in (found.train, found.test):
        for text in half.texts:
            seen.setdefault(text.split()[0].lower(), set()).add(half is found.test)
    return [where for word, where in seen.items() if word[0] == "x"]


def test_sentences_of_one_review_stay_together(folder):
    lines = [f"{r}_{part}\t1\tx{r} part {part}" for r in range(40) for part in range(3)]
    together = halves(folder, "amazonReviewSnippets", lines)
    assert all(len(where) == 1 for where in together)
    assert {True} in together


def test_copies_of_one_text_stay_together(folder):
    lines = [f"{n}\t1\t{'xX'[n % 2]}{n // 2}{' ' * (n % 2)}" for n in range(80)]
    together = halves(folder, "tweets", lines)
    assert all(len(where) == 1 for where in together)
    assert {True} in together


@pytest.mark.parametrize("score", ["good", "nan", "4.5", "-inf", ""])
def test_a_score_that_is_none_is_refused(folder, score):
    file = folder / "sentiment" / "tweets_GroundTruth.txt"
    file.write_text(f"1\t1.0\tfine\n2\t{score}\tlate\n")
    with pytest.raises(StateError) as caught:
        load(folder)
    assert str(caught.value) == (
        f'{file}:2: expected a score from -4 to 4, got "{score}"; is this another data set?'
    )


def test_a_missing_domain_is_named(folder):
    file = folder / "sentiment" / "tweets_GroundTruth.txt"
    file.unlink()
    with pytest.raises(StateError) as caught:
        load(folder)
    assert str(caught.value) == (
        f"{file}: cannot be read: No such file or directory; fetch the file again"
    )


def test_where_the_data_may_be_got_is_said():
    with pytest.raises(ConfigError) as caught:
        sentiment(Place())
    assert str(caught.value) == (
        "the sentiment data set does not ship with the project and was found nowhere; put it below "
        "a folder as sentiment and name that folder with data-dir or FEDFREEZE_DATA_DIR; its three "
        "files *_GroundTruth.txt are in hutto_ICWSM_2014.tar.gz of "
        "https://github.com/cjhutto/vaderSentiment, folder additional_resources"
    )


@pytest.mark.skipif(REAL is None, reason="FEDFREEZE_TEST_DATA names no folder with real data")
def test_the_real_set_is_whole_and_about_a_fifth_of_each_domain_is_test():
    found = load(Path(REAL))
    train, test = np.bincount(found.train.groups), np.bincount(found.test.groups)
    # Counted with awk: lines less those whose score is 0.
    assert (train + test).tolist() == [10_605 - 37, 4_200 - 4, 3_708 - 98]
    # Films and tweets are drawn one by one (standard errors 0.004, 0.006), Amazon's by review.
    np.testing.assert_allclose(test / (train + test), 51 / 256, atol=0.06)
