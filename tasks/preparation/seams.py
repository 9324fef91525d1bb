"""The two seams between raw examples and a model: preprocessing, and augmentation before it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from torch import Tensor


class Preprocessing(Protocol):
    """Turns a batch of raw inputs into what the model takes; hashable, always the same result."""

    def __call__(self, inputs: Tensor) -> Tensor:
        """The prepared batch, on the inputs' device."""
        ...

    def describe(self) -> dict[str, Any]:
        """What it does, as JSON values, for whoever uses the exported model."""
        ...


class Augmentation(Protocol):
    """Changes a batch of raw training inputs at random; hashable."""

    def __call__(self, inputs: Tensor, rng: np.random.Generator) -> Tensor:
        """A changed copy of the same shape and type; all randomness comes from ``rng``."""
        ...


class AsFloat:
    """Hands numbers on as float32, and whole numbers of words or classes as they are."""

    def __call__(self, inputs: Tensor) -> Tensor:
        """Float inputs as float32, others untouched."""
        return inputs.float() if inputs.is_floating_point() else inputs

    def describe(self) -> dict[str, Any]:
        """Nothing happens."""
        return {"kind": "none"}


AS_FLOAT = AsFloat()
