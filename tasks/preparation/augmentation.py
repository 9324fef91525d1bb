"""Random changes of training images, made on their raw bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedfreeze.errors import ConfigError


@dataclass(frozen=True)
class FlipAndCrop:
    """Mirrors half of the images and moves each by up to ``padding`` pixels either way.

    An image is surrounded with black and a window of its own size is cut out at a random place
    (He et al., 2016, section 4.2). Each image has its own draw.

    Attributes:
        flip: whether left and right are exchanged for half of the images; wrong for digits.
        padding: pixels of black on each side; 0 for no crop.
    """

    flip: bool
    padding: int

    def __post_init__(self) -> None:
        if self.padding < 0:
            raise ConfigError(f"augmentation: padding must be 0 or more pixels, got {self.padding}")

    def __call__(self, inputs: Tensor, rng: np.random.Generator) -> Tensor:
        """A changed copy of ``uint8[n, c, h, w]``; all randomness comes from ``rng``."""
        count, _, height, width = inputs.shape
        # All are drawn whatever the settings are, so that a draw depends on the seed alone.
        mirrored = rng.integers(0, 2, count).astype(bool) & self.flip
        down, right = rng.integers(0, 2 * self.padding + 1, (2, count))
        rows = down[:, None] + np.arange(height)
        columns = right[:, None] + np.arange(width)
        columns[mirrored] = columns[mirrored, ::-1]
        padded = functional.pad(inputs, [self.padding] * 4)
        image, row, column = (
            torch.from_numpy(index).to(inputs.device)
            for index in (
                np.arange(count)[:, None, None],
                rows[:, :, None],
                columns[:, None, :],
            )
        )
        # Indices around a slice put the channels last.
        return padded[image, :, row, column].permute(0, 3, 1, 2).contiguous()
