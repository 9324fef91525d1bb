"""The losses of single examples, where the task's loss is their mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch
from torch import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]


def squares_of(loss: Loss, outputs: Tensor, targets: Tensor) -> float:
    """Sum of the squared losses of these examples, in float64.

    A loss that takes ``reduction``, as torch's own do, gives them at once; any other one is asked
    example by example, since a task's loss is the mean over its examples.

    Args:
        loss: ``(outputs, targets) -> scalar``.
        outputs: of the model, ``[n, ...]``; no gradient flows.
        targets: ``[n, ...]``.
    """
    with torch.no_grad():
        losses = _at_once(loss, outputs, targets)
        if losses is None:
            one_by_one = [
                loss(outputs[at : at + 1], targets[at : at + 1]) for at in range(len(targets))
            ]
            losses = torch.stack([single.reshape(()) for single in one_by_one])
        return float(losses.double().square().sum())


def _at_once(loss: Loss, outputs: Tensor, targets: Tensor) -> Tensor | None:
    """``[n]``; None where the loss knows no ``reduction`` or does not mean torch's by it."""
    try:
        parameters = inspect.signature(loss).parameters
    except ValueError:  # a function without a signature, as of an extension
        return None
    if "reduction" not in parameters:
        return None
    losses = loss(outputs, targets, reduction="none")  # type: ignore[call-arg]
    if losses.dim() == 0 or len(losses) != len(targets):
        return None
    return losses.reshape(len(targets), -1).mean(1)
