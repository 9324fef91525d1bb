"""Preprocessing of images: from raw bytes to what a model takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

Interpolation = Literal["bilinear", "bicubic"]


@dataclass(frozen=True)
class Normalise:
    """``uint8[n, c, h, w]`` to floats: scaled to 0 ... 1, less ``mean``, divided by ``std``."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, inputs: Tensor) -> Tensor:
        """The prepared batch, ``float32[n, c, h, w]``."""
        mean = torch.tensor(self.mean, device=inputs.device).view(1, -1, 1, 1)
        std = torch.tensor(self.std, device=inputs.device).view(1, -1, 1, 1)
        return (inputs.float() / 255.0 - mean) / std

    def describe(self) -> dict[str, Any]:
        """Mean and standard deviation per channel, of pixels from 0 to 1."""
        return {"kind": "image", **asdict(self)}


@dataclass(frozen=True)
class ResizeAndNormalise:
    """What a model that was trained on larger colour images expects of small or grey ones.

    The whole image is resized to ``side``, without cutting a margin off: small images have none.
    Grey images become colour ones with three equal channels, so that weights that were trained on
    colour fit.

    Attributes:
        side: of the square result.
        mean, std: per channel of the result, of pixels from 0 to 1.
        interpolation: of the resizing; antialiased, as it is in training.
    """

    side: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: Interpolation = "bicubic"

    def __call__(self, inputs: Tensor) -> Tensor:
        """From ``uint8[n, c, h, w]`` to ``float32[n, len(mean), side, side]``."""
        values = inputs.float()
        if values.shape[-2:] != (self.side, self.side):
            resized = functional.interpolate(
                values, (self.side, self.side), mode=self.interpolation, antialias=True
            )
            # Bicubic weights are partly negative and overshoot at edges.
            values = resized.clamp(0.0, 255.0)
        channels = len(self.mean)
        if values.shape[1] == 1 and channels > 1:
            values = values.expand(-1, channels, -1, -1)
        return Normalise(self.mean, self.std)(values)

    def describe(self) -> dict[str, Any]:
        """Its settings, and that resizing is antialiased."""
        return {"kind": "image", "antialias": True, "channels": len(self.mean), **asdict(self)}
