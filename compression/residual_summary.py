"""What a board says of its residual, layer by layer, so that a server can see it grow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compression.residual import Tensors
from fedfreeze.layout import Layout


@dataclass(frozen=True)
class LayerResidual:
    """The residual of one layer.

    Attributes:
        norm: l2 norm over the layer's tensors.
        largest: largest absolute value.
        age_rounds: rounds since a packet last carried the layer's residual, or, where none did,
            since it began; None if nobody knows.
    """

    norm: float
    largest: float
    age_rounds: int | None


def summary(residual: Tensors, layout: Layout, ages: Mapping[str, int]) -> dict[str, LayerResidual]:
    """Every layer of which the residual holds a tensor, in forward order.

    Args:
        residual: by tensor name; tensors that the layout lacks are passed over.
        layout: of the model.
        ages: by layer, in rounds.
    """
    found = {}
    for layer in layout:
        squares, largest, held = 0.0, 0.0, False
        for tensor in layer.tensors:
            if tensor.name not in residual:
                continue
            held = True
            magnitudes = np.abs(residual[tensor.name]).astype(np.float64)
            squares += float(np.square(magnitudes).sum())
            largest = max(largest, float(magnitudes.max(initial=0)))
        if held:
            found[layer.name] = LayerResidual(math.sqrt(squares), largest, ages.get(layer.name))
    return found
