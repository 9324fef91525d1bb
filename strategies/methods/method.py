"""What a method is: how local updates are formed on a board and merged on the server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedfreeze.layout import Layout
from fedfreeze.settings import Settings
from strategies.local_step import LocalStep


class Method(ABC):
    """Base of the methods; ``name`` is what the strategy TOML calls it."""

    name: ClassVar[str]
    Settings: ClassVar[type[Settings]]

    def __init__(self, settings: Any, layout: Layout) -> None:
        self.settings = settings
        self.layout = layout

    @abstractmethod
    def step(self, name: str, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """The server's step for one tensor, from the weighted mean of its deltas (same shape)."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold, as JSON values."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - FedAvg has none
        """Take back what :meth:`state` gave."""

    def local_step(self) -> LocalStep:
        """The client half: what the method adds to each local step."""
        return LocalStep()
