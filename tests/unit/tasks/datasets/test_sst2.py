"""SST-2 in the layout of GLUE."""

import pytest

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.sst2 import sst2
from tasks.sources import Place


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "SST-2").mkdir()
    (tmp_path / "SST-2" / "train.tsv").write_text(
        'sentence\tlabel\nhide new secretions \t0\na " touching " film \t1\n'
    )
    (tmp_path / "SST-2" / "dev.tsv").write_text("sentence\tlabel\nit 's charming . \t1\n")
    return tmp_path


def load(folder):
    return sst2(Place(folder, demanded=True))


def refused(folder):
    with pytest.raises(StateError) as caught:
        load(folder)
    return str(caught.value)


def test_the_development_half_is_the_test_half(folder):
    found = load(folder)
    assert found.train.texts == ("hide new secretions ", 'a " touching " film ')
    assert found.train.classes == (0, 1)
    assert (found.test.texts, found.test.classes) == (("it 's charming . ",), (1,))


def test_the_half_without_labels_is_refused(folder):
    file = folder / "SST-2" / "dev.tsv"
    file.write_text("index\tsentence\n0\tuneasy mishmash\n")
    assert refused(folder) == (
        f'{file}: expected the first line "sentence TAB label", got "index\tsentence"; '
        "is this another data set?"
    )


def test_a_label_that_is_none_is_refused(folder):
    file = folder / "SST-2" / "dev.tsv"
    file.write_text("sentence\tlabel\nfine\t2\n")
    assert refused(folder) == f'{file}:2: expected a class, one of 0, 1, got "2"'


def test_where_the_data_may_be_got_is_said():
    with pytest.raises(ConfigError) as caught:
        sst2(Place())
    assert str(caught.value) == (
        "SST-2 does not ship with the project and was found nowhere; put it below a folder as "
        "SST-2 or sst2 and name that folder with data-dir or FEDFREEZE_DATA_DIR; "
        "it is the SST-2.zip of https://gluebenchmark.com/tasks, or stanfordnlp/sst2 of "
        "Hugging Face"
    )
