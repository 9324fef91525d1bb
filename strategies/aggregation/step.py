"""From decoded updates to the step that the server takes, with its norms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedfreeze.layout import Arrays, Layout
from strategies.aggregation.mean import Update, weighted_means
from strategies.methods import Method


@dataclass(frozen=True)
class GlobalStep:
    """The step of one round, for the layers that somebody trained.

    Attributes:
        steps: by layer and tensor, what is added to the model; float64.
        norm: by layer, the l2 norm of the step of its parameters.
        movement: by layer, that norm over the norm of the parameters before.
    """

    steps: dict[str, dict[str, NDArray[np.float64]]]
    norm: dict[str, float]
    movement: dict[str, float]


def global_step(
    layout: Layout, updates: Sequence[Update], method: Method, before: Arrays
) -> GlobalStep:
    """Merge layer by layer and let the method turn each mean into a step.

    Buffers (running statistics) are not optimised: they take the mean itself, whatever the method.
    """
    result = GlobalStep({}, {}, {})
    for name, means in weighted_means(layout, updates):
        parameters = [tensor.name for tensor in layout[name].parameters if tensor.name in means]
        steps = {
            tensor: method.step(tensor, mean) if tensor in parameters else mean
            for tensor, mean in means.items()
        }
        result.steps[name] = steps
        result.norm[name] = l2_norm(steps[tensor] for tensor in parameters)
        scale = l2_norm(before[tensor] for tensor in parameters)
        result.movement[name] = result.norm[name] / (scale + 1e-12)
    return result


def l2_norm(arrays: Iterable[NDArray[Any]]) -> float:
    """Over all values of all arrays, in float64.

    >>> l2_norm([np.array([3.0]), np.array([4.0])])
    5.0
    """
    return math.sqrt(sum(float(np.square(a.astype(np.float64)).sum()) for a in arrays))
