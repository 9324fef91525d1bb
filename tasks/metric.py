"""Metrics: one number from all outputs and targets of a set of examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfreeze.errors import ConfigError


@dataclass(frozen=True)
class Metric:
    """A named measure of outputs ``[n, ...]`` against targets ``[n, ...]``.

    Attributes:
        name: in records, in snake case: ``accuracy``, ``macro_f1``, ``mean_absolute_error``.
        measure: computes it; never called without examples.
        higher_is_better: which of two values is the better one.
    """

    name: str
    measure: Callable[[Tensor, Tensor], float]
    higher_is_better: bool = True


# ---- classes: outputs [n, classes], targets int[n]


def predicted(outputs: Tensor) -> Tensor:
    """The class with the largest output, ``int64[n]``; -1, which is none, where one is NaN.

    ``argmax`` alone takes NaN for the largest: a model that has diverged would seem to know the
    first class.
    """
    return outputs.argmax(1).masked_fill(outputs.isnan().any(1), -1)


def _accuracy(outputs: Tensor, targets: Tensor) -> float:
    return float((predicted(outputs) == targets).double().mean())


def _macro_f1(outputs: Tensor, targets: Tensor) -> float:
    # One row for the true class of each example, one for the predicted one.
    pairs = torch.stack([targets.long(), predicted(outputs)])
    classes, at = torch.unique(pairs, return_inverse=True)
    count = len(classes)
    in_targets, in_predictions = (row.bincount(minlength=count).double() for row in at)
    right = at[0][at[0] == at[1]].bincount(minlength=count).double()
    # F1 = 2 TP / (2 TP + FP + FN), and every class here occurs, so that nothing is divided by 0.
    return float((2 * right / (in_targets + in_predictions)).mean())


ACCURACY = Metric("accuracy", _accuracy)

# The mean of the F1 of every class that occurs among the targets or the predictions, so that a
# rare class counts as much as a common one.
MACRO_F1 = Metric("macro_f1", _macro_f1)


# ---- numbers: outputs [n], [n, 1] or [n, k], targets of as many values


def _as_columns(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Both as ``float64[n, k]``; without it ``[n, 1]`` less ``[n]`` would be ``[n, n]``."""
    left, right = (values.double().reshape(len(values), -1) for values in (outputs, targets))
    if left.shape != right.shape:
        raise ConfigError(
            f"expected as many outputs as targets, got outputs {list(outputs.shape)} for targets "
            f"{list(targets.shape)}; a metric of numbers suits no classes"
        )
    return left, right


def _mean_absolute_error(outputs: Tensor, targets: Tensor) -> float:
    left, right = _as_columns(outputs, targets)
    return float((left - right).abs().mean())


def _root_mean_square_error(outputs: Tensor, targets: Tensor) -> float:
    left, right = _as_columns(outputs, targets)
    return float((left - right).square().mean().sqrt())


def _r2(outputs: Tensor, targets: Tensor) -> float:
    left, right = _as_columns(outputs, targets)
    residual = (left - right).square().sum(0)
    total = (right - right.mean(0)).square().sum(0)
    # Of a constant column nothing can be explained: 1 if it was met, else 0.
    constant = total == 0
    of_constant = (residual == 0).double()
    explained = 1 - residual / total.where(~constant, torch.ones_like(total))
    return float(torch.where(constant, of_constant, explained).mean())


MEAN_ABSOLUTE_ERROR = Metric("mean_absolute_error", _mean_absolute_error, higher_is_better=False)

ROOT_MEAN_SQUARE_ERROR = Metric(
    "root_mean_square_error", _root_mean_square_error, higher_is_better=False
)

# The share of the targets' variance that is explained; of several columns, the mean share.
R2 = Metric("r2", _r2)
