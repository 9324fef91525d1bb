"""torchvision's window attention (Swin, both versions) with projections of their own."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.tracing.projections import thirds_of

_CLASSES = frozenset(
    f"torchvision.models.swin_transformer.ShiftedWindowAttention{version}" for version in ("", "V2")
)
# What a position in another window's content loses in the scores: as the original has it.
_FAR = -100.0


def is_window_attention(module: nn.Module) -> bool:
    """Whether the module is torchvision's window attention itself, not a class derived from it."""
    return f"{type(module).__module__}.{type(module).__qualname__}" in _CLASSES


class SplitWindowAttention(nn.Module):
    """Attention within windows of a map, which are shifted in every other block.

    Takes and returns ``[n, height, width, channels]``. Source: Liu et al., "Swin Transformer", 2021
    (relative position bias from a table) and "Swin Transformer V2", 2022 (cosine attention with a
    learned temperature, the bias from a small network, no bias for keys).
    """

    def __init__(self, fused: Any) -> None:
        super().__init__()
        self.window_size: list[int] = fused.window_size
        self.shift_size: list[int] = fused.shift_size
        self.num_heads: int = fused.num_heads
        self.attention_dropout: float = fused.attention_dropout
        self.dropout: float = fused.dropout
        self.q, self.k, self.v = thirds_of(fused.qkv)
        self.proj: nn.Linear = fused.proj
        self.cosine = hasattr(fused, "logit_scale")
        if self.cosine:
            self.k.register_parameter("bias", None)
            self.logit_scale: nn.Parameter = fused.logit_scale
            self.cpb_mlp: nn.Module = fused.cpb_mlp
            self.relative_coords_table: Tensor
            self.register_buffer("relative_coords_table", fused.relative_coords_table)
        else:
            self.relative_position_bias_table: nn.Parameter = fused.relative_position_bias_table
        self.relative_position_index: Tensor
        self.register_buffer("relative_position_index", fused.relative_position_index)

    def forward(self, maps: Tensor) -> Tensor:
        """Attention within windows."""
        _, height, width, _ = maps.shape
        down, across = self.window_size
        padded = functional.pad(maps, (0, 0, 0, -width % across, 0, -height % down))
        size = (padded.shape[1], padded.shape[2])
        # A window that covers the whole map has nothing to be shifted against.
        shift = [
            0 if window >= length else by
            for window, length, by in zip(self.window_size, size, self.shift_size, strict=True)
        ]
        if any(shift):
            padded = padded.roll((-shift[0], -shift[1]), dims=(1, 2))
        windows = self._partition(padded)
        bias = self._position_bias()
        if any(shift):
            bias = self._with_shift_mask(bias, windows, size, shift)
        mixed = self._attend(windows, bias)
        mixed = functional.dropout(self.proj(mixed), self.dropout, self.training)
        rows, columns = size[0] // down, size[1] // across
        whole = mixed.reshape(-1, rows, columns, down, across, mixed.shape[-1])
        whole = whole.transpose(2, 3).reshape(-1, *size, mixed.shape[-1])
        if any(shift):
            whole = whole.roll((shift[0], shift[1]), dims=(1, 2))
        return whole[:, :height, :width].contiguous()

    def _partition(self, maps: Tensor) -> Tensor:
        """``[n, height, width, c]`` to ``[n * windows, places, c]``, image by image."""
        down, across = self.window_size
        n, height, width, channels = maps.shape
        tiles = maps.reshape(n, height // down, down, width // across, across, channels)
        return tiles.transpose(2, 3).reshape(-1, down * across, channels)

    def _attend(self, windows: Tensor, bias: Tensor) -> Tensor:
        """``[m, places, c]`` with ``bias`` ``[1 or windows, heads, places, places]``."""
        query, key, value = (
            part(windows).reshape(*windows.shape[:2], self.num_heads, -1).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        if self.cosine:
            scores = functional.normalize(query, dim=-1) @ functional.normalize(
                key, dim=-1
            ).transpose(-2, -1)
            scores = scores * self.logit_scale.clamp(max=math.log(100.0)).exp()
        else:
            scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
        scores = (scores.reshape(-1, *bias.shape) + bias).reshape(scores.shape)
        weights = functional.dropout(
            torch.softmax(scores, dim=-1), self.attention_dropout, self.training
        )
        mixed: Tensor = weights @ value
        return mixed.transpose(1, 2).flatten(2)

    def _position_bias(self) -> Tensor:
        """``[1, heads, places, places]``."""
        if self.cosine:
            table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        else:
            table = self.relative_position_bias_table
        places = math.prod(self.window_size)
        bias = table[self.relative_position_index].view(places, places, -1)
        bias = bias.permute(2, 0, 1).contiguous().unsqueeze(0)
        return 16 * torch.sigmoid(bias) if self.cosine else bias

    def _with_shift_mask(
        self, bias: Tensor, windows: Tensor, size: tuple[int, int], shift: list[int]
    ) -> Tensor:
        """The bias for each window, with places that were not neighbours kept apart."""
        parts = []
        for length, window, by in zip(size, self.window_size, shift, strict=True):
            at = torch.arange(length, device=windows.device)
            parts.append((at >= length - window).long() + (at >= length - by).long())
        region = (3 * parts[0][:, None] + parts[1][None, :])[None, :, :, None]
        region = self._partition(region).squeeze(-1)
        apart = region.unsqueeze(1) != region.unsqueeze(2)
        mask = torch.zeros_like(apart, dtype=windows.dtype).masked_fill(apart, _FAR)
        return bias + mask.unsqueeze(1)
