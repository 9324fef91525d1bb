"""Merging updates that each cover a different part of the model.

For every layer l, over the clients T_l that trained it,

    mean_l = sum_{i in T_l} w_i delta_{i,l} / sum_{i in T_l} w_i

A layer that nobody trained has no mean: it stays bit-identical. The denominator is the layer's,
never a coordinate's: under top-k with error feedback a coordinate that a client did not send is a
0 that counts, and dividing by the number of senders would break the sum of what clients learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedfreeze.layout import Arrays, Layout


@dataclass(frozen=True)
class Update:
    """One client's decoded update.

    Attributes:
        device_id: fixes the order of addition, so that arrival order does not change a bit.
        weight: above 0; for FedAvg the number of examples.
        layers: what its packet covers: all that the client trained, even where no value of a
            layer was sent; nothing when the budget had no room and all of it stays in the residual.
        deltas: the float tensors of these layers.
    """

    device_id: str
    weight: float
    layers: tuple[str, ...]
    deltas: Arrays


def weighted_means(
    layout: Layout, updates: Sequence[Update]
) -> Iterator[tuple[str, dict[str, NDArray[np.float64]]]]:
    """Layer by layer, the weighted mean of each float tensor, in float64.

    Yields:
        The layer's name and its means by tensor name, only for layers that somebody trained.

    >>> import numpy as np
    >>> from fedfreeze.layout import Layer, TensorSpec
    >>> layout = Layout("m", (Layer("a", (TensorSpec("a.w", (1,), "float32"),)),))
    >>> trained = Update("A", 100, ("a",), {"a.w": np.ones(1, np.float32)})
    >>> frozen = Update("B", 300, (), {})
    >>> [(name, means["a.w"].item()) for name, means in weighted_means(layout, [trained, frozen])]
    [('a', 1.0)]
    """
    ordered = sorted(updates, key=lambda update: update.device_id)
    for layer in layout:
        trainers = [update for update in ordered if layer.name in update.layers]
        if not trainers:
            continue
        total = sum(update.weight for update in trainers)
        means = {}
        for tensor in layer.tensors:
            if not tensor.travels:
                continue
            summed = np.zeros(tensor.shape, np.float64)
            for update in trainers:
                summed += update.weight * update.deltas[tensor.name].astype(np.float64)
            means[tensor.name] = np.asarray(summed / total)  # a scalar stays an array
        yield layer.name, means
