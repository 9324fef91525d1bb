"""The optimizer that ``[local]`` asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from strategies.tables import Local


def optimizer_of(
    groups: Iterable[Sequence[nn.Parameter]], local: Local, learning_rate: float
) -> torch.optim.Optimizer:
    """A fresh one, without momentum yet.

    Args:
        groups: what it steps, in groups whose rates may differ; a parameter whose gradient is None
            is left as it is.
        local: which kind, its momentum and weight decay.
        learning_rate: of this round, after the schedule.
    """
    chosen: list[dict[str, Any]] = [{"params": list(group)} for group in groups]
    if local.optimizer == "sgd":
        return torch.optim.SGD(
            chosen, learning_rate, momentum=local.momentum, weight_decay=local.weight_decay
        )
    kind = torch.optim.Adam if local.optimizer == "adam" else torch.optim.AdamW
    return kind(chosen, learning_rate, weight_decay=local.weight_decay)
