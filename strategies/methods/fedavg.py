"""``fedavg``: the weighted mean of the deltas, times a server learning rate.

McMahan et al., 2017, written on deltas: ``theta <- theta + eta_g * sum_i n_i delta_i / sum_i n_i``.
With ``server-learning-rate = 1`` it is FedAvg as published.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedfreeze import settings
from strategies.methods.method import Method


class FedAvgSettings(settings.Settings):
    """``[method]`` of ``fedavg``."""

    name: Literal["fedavg"] = "fedavg"
    server_learning_rate: settings.Positive = Field(
        1.0, description="eta_g: what the mean delta is multiplied with"
    )


class FedAvg(Method):
    """See the module's docstring."""

    name: ClassVar[str] = "fedavg"
    Settings: ClassVar[type[settings.Settings]] = FedAvgSettings
    settings: FedAvgSettings

    def step(self, name: str, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """``eta_g * mean``."""
        del name
        return self.settings.server_learning_rate * mean
