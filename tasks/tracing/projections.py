"""Separate query, key and value projections in place of a fused one."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SplitProjection(nn.Module):
    """Query, key and value, one behind the other as the fused projection gave them.

    Whoever reads thirds of a ``qkv`` need not know that it was split; the price is one copy of the
    three results.

    Args:
        fused: ``[..., d]`` to ``[..., 3 e]``, its rows query, key, value.
        biases: of query, key and value where the attention keeps them beside the projection.
    """

    def __init__(
        self, fused: nn.Linear, biases: tuple[Tensor | None, ...] = (None, None, None)
    ) -> None:
        super().__init__()
        self.q, self.k, self.v = thirds_of(fused, biases)

    def forward(self, inputs: Tensor) -> Tensor:
        """``[..., 3 e]``."""
        return torch.cat([self.q(inputs), self.k(inputs), self.v(inputs)], dim=-1)


def thirds_of(
    fused: nn.Linear, biases: tuple[Tensor | None, ...] = (None, None, None)
) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    """Query, key and value layers from a layer whose rows are all three."""
    parts = biases if fused.bias is None else fused.bias.chunk(3)
    query, key, value = (
        linear_of(weight, bias) for weight, bias in zip(fused.weight.chunk(3), parts, strict=True)
    )
    return query, key, value


def linear_of(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A linear layer with copies of these values, as trainable as they are."""
    linear = nn.Linear(
        weight.shape[1],
        weight.shape[0],
        bias=bias is not None,
        device=weight.device,
        dtype=weight.dtype,
    )
    with torch.no_grad():
        linear.weight.copy_(weight)
        if bias is not None:
            linear.bias.copy_(bias)
    linear.weight.requires_grad_(weight.requires_grad)
    if bias is not None:
        linear.bias.requires_grad_(bias.requires_grad)
    return linear
