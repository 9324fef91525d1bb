"""The optimizer that ``[local]`` asks for."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from strategies.tables import Local


def optimizer_of(
    parameters: Iterable[nn.Parameter], local: Local, learning_rate: float
) -> torch.optim.Optimizer:
    """A fresh one, without momentum yet.

    Args:
        parameters: what it steps; one whose gradient is None is left as it is.
        local: which kind, its momentum and weight decay.
        learning_rate: of this round, after the schedule.
    """
    chosen = list(parameters)
    if local.optimizer == "sgd":
        return torch.optim.SGD(
            chosen, learning_rate, momentum=local.momentum, weight_decay=local.weight_decay
        )
    kind = torch.optim.Adam if local.optimizer == "adam" else torch.optim.AdamW
    return kind(chosen, learning_rate, weight_decay=local.weight_decay)
