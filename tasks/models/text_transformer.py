"""A small transformer that reads texts, trained from scratch (Vaswani et al., 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.inputs import Inputs
from tasks.models.fitting import tokens_of
from tasks.models.spec import ModelSpec
from tasks.models.word_pooling import mean_of_words
from tasks.preparation.tokens import PAD
from tasks.pretrained import from_file

_WIDTH, _HEADS, _DEPTH = 96, 4, 2


class Attention(nn.Module):
    """Multi-head self-attention with projections of their own: ``[n, length, width]``."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Each position's mix of those where ``mask``, ``bool[n, 1, 1, length]``, holds."""
        query, key, value = (
            projection(hidden).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        projected: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return projected


class Block(nn.Module):
    """Attention, then two linear layers, each after a norm and around a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """The same shape."""
        hidden = hidden + self.attn(self.norm1(hidden), mask)
        residual: Tensor = hidden + self.mlp(self.norm2(hidden))
        return residual


class Embeddings(nn.Module):
    """A word's vector plus its position's: ``int64[n, length]`` to ``[n, length, width]``.

    Drawn smaller than torch draws them, whose sums would drown what attention adds.
    """

    def __init__(self, vocabulary: int, length: int, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.positions = nn.Embedding(length, width)
        for table in (self.words, self.positions):
            nn.init.normal_(table.weight, std=0.1)
        with torch.no_grad():
            self.words.weight[PAD] = 0.0

    def forward(self, tokens: Tensor) -> Tensor:
        """Vectors of a batch."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        vectors: Tensor = self.words(tokens) + self.positions(places)
        return vectors


class TextTransformer(nn.Module):
    """Word and position embeddings, blocks, and a head on the mean over the words of a text.

    Takes ``int64[n, length]`` up to the length it was built for and gives ``float32[n, outputs]``.
    Padding is masked in attention and left out of the mean, so it changes nothing.
    """

    def __init__(self, vocabulary: int, length: int, outputs: int) -> None:
        super().__init__()
        self.embeddings = Embeddings(vocabulary, length, _WIDTH)
        self.blocks = nn.ModuleList(Block(_WIDTH, _HEADS) for _ in range(_DEPTH))
        self.norm = nn.LayerNorm(_WIDTH)
        self.head = nn.Linear(_WIDTH, outputs)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of a batch."""
        first = torch.arange(tokens.shape[1], device=tokens.device) == 0
        # An empty text attends to its first position: a softmax over nothing would be nan.
        mask = ((tokens != PAD) | first)[:, None, None, :]
        hidden = self.embeddings(tokens)
        for block in self.blocks:
            hidden = block(hidden, mask)
        logits: Tensor = self.head(mean_of_words(self.norm(hidden), tokens))
        return logits


def _build(inputs: Inputs, outputs: int) -> nn.Module:
    tokens = tokens_of(inputs, "text-transformer")
    return TextTransformer(tokens.vocabulary, tokens.length, outputs)


TEXT_TRANSFORMER = ModelSpec(build=_build, load_pretrained=from_file(("head",)))
