"""Reuters R8 in its two published forms."""

import gzip
import os
from collections import Counter
from pathlib import Path

import pytest

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.reuters import LABELS, reuters_r8
from tasks.sources import Place

REAL = os.environ.get("FEDFREEZE_TEST_DATA")
HEADER = "Category\tText\nd\tstring\nclass\t\n"
TRAIN, TEST = "earn\tprofit rose\nship\tport closed\n", "acq\tstake bought\n"


def load(folder):
    return reuters_r8(Place(folder, demanded=True))


def orange(folder: Path, train=HEADER + TRAIN, test=HEADER + TEST):
    (folder / "reuters-r8").mkdir()
    for half, content in (("train", train), ("test", test)):
        path = folder / "reuters-r8" / f"reuters-r8-{half}.tab.gz"
        path.write_bytes(gzip.compress(content.encode()))


def check(found):
    assert found.train.texts == ("profit rose", "port closed")
    assert [LABELS[number] for number in found.train.classes] == ["earn", "ship"]
    assert found.test.texts == ("stake bought",)
    assert [LABELS[number] for number in found.test.classes] == ["acq"]
    assert (found.group, found.train.groups) == ("", None)


def test_files_of_orange_have_three_lines_of_header(tmp_path):
    orange(tmp_path)
    check(load(tmp_path))


def test_files_as_first_published_have_none(tmp_path):
    (tmp_path / "reuters-r8").mkdir()
    for half, content in (("train", TRAIN), ("test", TEST)):
        (tmp_path / "reuters-r8" / f"r8-{half}-all-terms.txt").write_text(content)
    check(load(tmp_path))


def test_a_topic_that_is_none_of_the_eight_is_refused(tmp_path):
    orange(tmp_path, test=HEADER + "earn\tx\ncoffee\tbeans\n")
    with pytest.raises(StateError) as caught:
        load(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/reuters-r8/reuters-r8-test.tab.gz:5: expected a class, one of acq, crude, "
        'earn, grain, interest, money-fx, ship, trade, got "coffee"'
    )


def test_where_the_data_may_be_got_is_said():
    with pytest.raises(ConfigError) as caught:
        reuters_r8(Place())
    assert str(caught.value) == (
        "Reuters R8 does not ship with the project and was found nowhere; put it below a folder "
        "as reuters-r8/r8-train-all-terms.txt or reuters-r8/reuters-r8-train.tab.gz or "
        "reuters-r8/reuters-r8-train.tab and name that folder with data-dir or "
        "FEDFREEZE_DATA_DIR; "
        "https://ana.cachopo.org/datasets-for-single-label-text-categorization has both halves"
    )


@pytest.mark.skipif(REAL is None, reason="FEDFREEZE_TEST_DATA names no folder with real data")
def test_the_real_set_has_the_published_numbers_of_texts():
    found = load(Path(REAL))
    # As its publisher tabulates them.
    published = {
        "acq": (1596, 696),
        "crude": (253, 121),
        "earn": (2840, 1083),
        "grain": (41, 10),
        "interest": (190, 81),
        "money-fx": (206, 87),
        "ship": (108, 36),
        "trade": (251, 75),
    }
    train, test = Counter(found.train.classes), Counter(found.test.classes)
    counted = {label: (train[number], test[number]) for number, label in enumerate(LABELS)}
    assert counted == published
