"""What one raw example looks like: enough to build a model for it and to trace that model.

Raw examples stay as small as they came (bytes of an image, ids of words); a task's preprocessing
turns a batch of them into what the model takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Inputs(Protocol):
    """The shape and type of raw examples."""

    def example(self, count: int) -> Tensor:
        """A batch of ``count`` made-up examples from torch's current random state."""
        ...


@dataclass(frozen=True)
class Images:
    """``uint8[n, channels, side, side]``."""

    channels: int
    side: int

    def example(self, count: int) -> Tensor:
        """Random bytes."""
        shape = (count, self.channels, self.side, self.side)
        return torch.randint(0, 256, shape, dtype=torch.uint8)


@dataclass(frozen=True)
class Tokens:
    """``int64[n, length]``: numbers of words below ``vocabulary``; 0 pads the end."""

    vocabulary: int
    length: int

    def example(self, count: int) -> Tensor:
        """Random words, without padding."""
        return torch.randint(1, self.vocabulary, (count, self.length))


@dataclass(frozen=True)
class Values:
    """``dtype[n, *shape]``: readings of a sensor, samples of a sound, columns of a table."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32

    def example(self, count: int) -> Tensor:
        """Random numbers of about the size that the type is used for."""
        values = torch.randn(count, *self.shape)
        return (
            values.to(self.dtype)
            if self.dtype.is_floating_point
            else (values * 1000).to(self.dtype)
        )
