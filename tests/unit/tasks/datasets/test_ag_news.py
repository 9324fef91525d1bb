"""AG News as published."""

import pytest

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.ag_news import LABELS, ag_news
from tasks.sources import Place

TRAIN = (
    '"3","Wall St. Bears (Reuters)","Reuters - Short-sellers, ""ultra-cynics"",\\are back."\n'
    '"4","A, b","c"\n'
)
TEST = '"1","World","news"\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ag_news_csv").mkdir()
    (tmp_path / "ag_news_csv" / "train.csv").write_text(TRAIN)
    (tmp_path / "ag_news_csv" / "test.csv").write_text(TEST)
    return tmp_path


def load(folder):
    return ag_news(Place(folder, demanded=True))


def refused(folder):
    with pytest.raises(StateError) as caught:
        load(folder)
    return str(caught.value)


def test_title_and_description_are_one_text(folder):
    found = load(folder)
    assert found.train.texts == (
        'Wall St. Bears (Reuters) Reuters - Short-sellers, "ultra-cynics", are back.',
        "A, b c",
    )
    assert [LABELS[number] for number in found.train.classes] == [
        "business",
        "science and technology",
    ]
    assert (found.test.texts, found.test.classes) == (("World news",), (0,))


def test_a_class_that_is_none_is_refused(folder):
    file = folder / "ag_news_csv" / "test.csv"
    file.write_text(TEST + '"5","x","y"\n')
    assert refused(folder) == f'{file}:2: expected a class, one of 1, 2, 3, 4, got "5"'


def test_a_row_of_other_columns_is_refused(folder):
    file = folder / "ag_news_csv" / "test.csv"
    file.write_text("text,label\n")
    assert refused(folder) == (
        f"{file}:1: expected class, title, description, got 2 columns; is this another data set?"
    )


def test_empty_lines_are_no_examples(folder):
    file = folder / "ag_news_csv" / "test.csv"
    whole = ag_news(Place(folder)).test
    file.write_text("\n" + file.read_text() + "\n\n")
    assert ag_news(Place(folder)).test == whole


def test_a_torn_file_is_refused(folder):
    file = folder / "ag_news_csv" / "test.csv"
    file.write_text('"1","World","ne')
    assert refused(folder) == f"{file}:1: cannot be read: unexpected end of data"


def test_where_the_data_may_be_got_is_said():
    with pytest.raises(ConfigError) as caught:
        ag_news(Place())
    assert str(caught.value) == (
        "AG News does not ship with the project and was found nowhere; put it below a folder as "
        "ag_news_csv or ag_news and name that folder with data-dir or FEDFREEZE_DATA_DIR; "
        "it is the ag_news_csv of Zhang et al. (2015), or fancyzhx/ag_news of Hugging Face"
    )
