"""MiniLM, a small BERT with real weights, fine-tuned (Wang et al., 2020); the extra ``text``.

22.6 million parameters are too many for most boards to train: they freeze all but the head or the
last blocks, and take part all the same.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from fedfreeze.errors import ConfigError, StateError
from tasks.inputs import Inputs
from tasks.models import minilm_package
from tasks.models.fitting import tokens_of
from tasks.models.spec import ModelSpec
from tasks.models.word_pooling import mean_of_words
from tasks.preparation.tokens import PAD
from tasks.pretrained import HUB, Loader, Tensors, described, fill, named_file, read_weights

_WEIGHTS = "model.safetensors"
_HEAD = "head"
# MiniLM-L6-H384-uncased's own configuration. It stands here so that every node builds the same
# layout, whether or not it has the weights; weights of another shape are refused.
_CONFIG = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
    "pad_token_id": PAD,
}
# Of the published weights and not of this model: numbers 0 to 511, and a layer that only the task
# of the original training used.
_UNUSED = ("embeddings.position_ids", "pooler.")


class SentenceClassifier(nn.Module):
    """BERT, and a linear head on the mean of its last states over the pieces of a text.

    Takes ``int64[n, length]``, 0 where a text has ended, and gives ``float32[n, outputs]``. The
    mean is how all-MiniLM-L6-v2 was trained to stand for a text (Reimers and Gurevych, 2019).
    """

    def __init__(self, bert: nn.Module, width: int, outputs: int) -> None:
        super().__init__()
        self.bert = bert
        self.head = nn.Linear(width, outputs)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of a batch."""
        mask = (tokens != PAD).long()
        states = self.bert(input_ids=tokens, attention_mask=mask).last_hidden_state
        logits: Tensor = self.head(mean_of_words(states, tokens))
        return logits


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise ConfigError(
            f'model "minilm" needs the package transformers: {error}; '
            "pip install 'fedfreeze[text]'"
        ) from error


def _build(inputs: Inputs, outputs: int) -> nn.Module:
    tokens = tokens_of(inputs, "minilm")
    longest = _CONFIG["max_position_embeddings"]
    if tokens.length > longest:
        raise ConfigError(
            f'model.name: "minilm" reads at most {longest} pieces of a text, the task gives '
            f"{tokens.length}; choose another model"
        )
    transformers = _transformers()
    config = transformers.BertConfig(vocab_size=tokens.vocabulary, **_CONFIG)
    bert = transformers.BertModel(config, add_pooling_layer=False)
    return SentenceClassifier(bert, config.hidden_size, outputs)


def hub_file() -> Path:
    """The published weights in the hub's cache; fetched if they are not there yet.

    Raises:
        ConfigError: the hub cannot be reached.
    """
    try:
        hub = importlib.import_module("huggingface_hub")
        return Path(hub.hf_hub_download(minilm_package.REPOSITORY, _WEIGHTS))
    except Exception as error:  # many kinds: no network, no such file, a proxy's answer
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            "model.pretrained: the weights of minilm are neither installed nor can they be "
            f"fetched: {minilm_package.INSTALL}, or give a file, {_WEIGHTS} of "
            f"{minilm_package.REPOSITORY} ({reason})"
        ) from error


def loader(package: Path | None, fetch: Callable[[], Path] = hub_file) -> Loader:
    """What fills the model: from the package's archive, else from the hub, or from a file.

    Args:
        package: the archive of the installed package; None if it is not installed.
        fetch: gets the published weights.
    """

    def fill_model(model: nn.Module, origin: str) -> str:
        if origin == HUB and package is not None:
            where = f"package {minilm_package.NAME}, {_WEIGHTS}"
            content = minilm_package.member(package, _WEIGHTS)
            source = f"{where} (sha256 {hashlib.sha256(content).hexdigest()[:16]})"
            tensors = _unpacked(content, where)
        else:
            path = fetch() if origin == HUB else named_file(origin)
            where = minilm_package.REPOSITORY if origin == HUB else str(path)
            source, tensors = described(path, where), read_weights(path)
        fill(model, renamed(tensors), (_HEAD,), where)
        return source

    return fill_model


def _unpacked(content: bytes, where: str) -> Tensors:
    try:
        return load(content)
    except SafetensorError as error:
        raise StateError(f"{where}: cannot be read: {error}; install it again") from error


def renamed(tensors: Tensors) -> Tensors:
    """Published tensors by this model's names; those of an earlier run as they are."""
    if any(name.startswith("bert.") for name in tensors):
        return {name: t for name, t in tensors.items() if not name.startswith("bert.pooler.")}
    return {
        f"bert.{name}": tensor
        for name, tensor in tensors.items()
        if not name.startswith(_UNUSED) and not name.startswith(f"{_HEAD}.")
    }


MINILM = ModelSpec(build=_build, load_pretrained=loader(minilm_package.archive()))
