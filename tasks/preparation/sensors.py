"""Preprocessing of readings from sensors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scale:
    """``[n, ..., channels]`` of any number type to float32: each channel times its factor."""

    factors: tuple[float, ...]

    def __call__(self, inputs: Tensor) -> Tensor:
        """The prepared batch, of the same shape."""
        return inputs.float() * torch.tensor(self.factors, device=inputs.device)

    def describe(self) -> dict[str, Any]:
        """The factor of each channel."""
        return {"kind": "scale", **asdict(self)}
