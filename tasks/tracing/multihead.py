"""``torch.nn.MultiheadAttention`` with query, key and value projections of their own."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.tracing.projections import linear_of


class SplitMultiheadAttention(nn.Module):
    """What the attention that it was made from computes, argument by argument.

    Takes and returns what :class:`torch.nn.MultiheadAttention` does, and draws the same dropout
    masks. What torch's layers look up on their attention is here as well, and keeps them off their
    fused short cut.
    """

    # Read by nn.TransformerEncoderLayer and nn.TransformerDecoderLayer.
    _qkv_same_embed_dim = False
    in_proj_weight = None
    in_proj_bias = None

    def __init__(self, fused: nn.MultiheadAttention) -> None:
        super().__init__()
        self.embed_dim, self.kdim, self.vdim = fused.embed_dim, fused.kdim, fused.vdim
        self.num_heads, self.head_dim = fused.num_heads, fused.head_dim
        self.dropout, self.batch_first = fused.dropout, fused.batch_first
        self.add_zero_attn = fused.add_zero_attn
        weights: tuple[Tensor | None, ...] = (
            fused.q_proj_weight,
            fused.k_proj_weight,
            fused.v_proj_weight,
        )
        if fused.in_proj_weight is not None:
            weights = fused.in_proj_weight.chunk(3)
        biases = (None,) * 3 if fused.in_proj_bias is None else fused.in_proj_bias.chunk(3)
        self.q_proj, self.k_proj, self.v_proj = (
            linear_of(weight, bias)
            for weight, bias in zip(weights, biases, strict=True)
            if weight is not None
        )
        self.out_proj = fused.out_proj
        self.bias_k, self.bias_v = fused.bias_k, fused.bias_v

    def forward(  # noqa: PLR0917  # the signature is torch's
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As :meth:`torch.nn.MultiheadAttention.forward`.

        ``is_causal`` only says of ``attn_mask`` what it is; the mask itself is used.
        """
        if is_causal and attn_mask is None:
            raise RuntimeError("is_causal is a hint about attn_mask: expected a mask, got None")
        batched = query.dim() == 3
        if not batched:
            query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (tensor.transpose(0, 1) for tensor in (query, key, value))
        q = self._heads(self.q_proj(query))
        k, v, added = self._keys_and_values(self.k_proj(key), self.v_proj(value))
        mask = self._mask(attn_mask, key_padding_mask, q, added)
        p = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = (q * math.sqrt(1.0 / self.head_dim)) @ k.transpose(-2, -1)
            weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
            weights = functional.dropout(weights, p) if p > 0 else weights
            mixed = weights @ v
        else:
            mixed = functional.scaled_dot_product_attention(q, k, v, mask, p)
        # Sequence first in memory, as torch has it: a dropout behind then draws the same mask.
        output = self.out_proj(mixed.permute(2, 0, 1, 3).flatten(2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        if not batched:
            return output.squeeze(1), None if weights is None else weights.squeeze(0)
        return (output.transpose(0, 1) if self.batch_first else output), weights

    def _heads(self, projected: Tensor) -> Tensor:
        """``[n, length, e]`` to ``[n, heads, length, e / heads]``."""
        heads = projected.reshape(*projected.shape[:2], self.num_heads, self.head_dim)
        return heads.transpose(1, 2)

    def _keys_and_values(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, int]:
        """Keys and values by heads, with what is added behind them, and how many that are."""
        added = 0
        if self.bias_k is not None and self.bias_v is not None:
            key = torch.cat([key, self.bias_k.expand(len(key), -1, -1)], dim=1)
            value = torch.cat([value, self.bias_v.expand(len(value), -1, -1)], dim=1)
            added += 1
        k, v = self._heads(key), self._heads(value)
        if self.add_zero_attn:
            k, v = functional.pad(k, (0, 0, 0, 1)), functional.pad(v, (0, 0, 0, 1))
            added += 1
        return k, v, added

    def _mask(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor, added: int
    ) -> Tensor | None:
        """Both masks as one that is added to the scores ``[n, heads, target, source]``."""
        parts = []
        if attn_mask is not None:
            mask = _additive(attn_mask, query)
            shape = (1, 1) if mask.dim() == 2 else (len(query), self.num_heads)
            parts.append(mask.reshape(*shape, *mask.shape[-2:]))
        if key_padding_mask is not None:
            parts.append(_additive(key_padding_mask, query)[:, None, None, :])
        if not parts:
            return None
        return functional.pad(sum(parts[1:], parts[0]), (0, added))


def _additive(mask: Tensor, query: Tensor) -> Tensor:
    """A mask as what is added to scores; true means: not allowed."""
    if mask.dtype is not torch.bool:
        return mask.to(query.dtype)
    return torch.zeros_like(mask, dtype=query.dtype).masked_fill(mask, -math.inf)
