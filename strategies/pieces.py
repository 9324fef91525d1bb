"""What any set of layers takes, by array arithmetic over its layers.

With p the shallowest layer of a set A,

    memory(A) = the worst phase's fixed_p + sum of extra_l over A
    FLOPs(A)  = reach_p + sum of dW_l over A                             (one stage, an example)

Sums run over the layers one by one, so that every platform rounds them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_profiles.memory import LIBRARY_BYTES, round_phases
from fedfreeze.layout import Layout
from strategies.means import Means
from strategies.packet_sizes import float_buffer_bytes

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Chosen = NDArray[np.bool_]

# Bytes by the shallowest layer that trains, and of each layer that does.
Phase = tuple[tuple[float, ...], tuple[float, ...]]


class Pieces:
    """The arrays of one board and the layers that may train there, in forward order."""

    def __init__(self, means: Means, free: Sequence[str]) -> None:
        self.means = means
        self.free = tuple(free)
        self._layers = [means.layout[name] for name in free]
        self._at = np.array([means.layout.names.index(name) for name in free])

    @cached_property
    def parameters(self) -> Counts:
        """Of each free layer, as below."""
        return np.array([layer.parameter_count for layer in self._layers], np.int64)

    @cached_property
    def buffers(self) -> Counts:
        """Bytes of float buffers."""
        return np.array([float_buffer_bytes(layer) for layer in self._layers], np.int64)

    @cached_property
    def weight_flops(self) -> Floats:
        """FLOPs of weight gradients, for an example."""
        return np.array([layer.costs.weight_grad_flops for layer in self._layers])

    @cached_property
    def reach_flops(self) -> Floats:
        """FLOPs of an example without weight gradients, by the shallowest layer."""
        reach: Floats = np.array(_reach(self.means.layout))[self._at]
        return reach

    def memory(self, splits: int) -> list[tuple[Floats, Floats]]:
        """``fixed`` and ``extra`` of every phase, with batches in so many parts."""
        limits = self.means.limits
        part = -(-limits.batch_size // splits)
        phases = _memory(self.means.layout, part, limits.optimizer_slots)
        return [(np.array(fixed)[self._at], np.array(extra)[self._at]) for fixed, extra in phases]

    # ---- sets: a column of ``chosen`` is one set, and has a layer

    def memory_bytes(self, chosen: Chosen, splits: int) -> Floats:
        """Peak of training each set."""
        first = chosen.argmax(axis=0)
        phases = [fixed[first] + summed(extra, chosen) for fixed, extra in self.memory(splits)]
        worst: Floats = np.maximum.reduce(phases)
        return worst

    def epoch_flops(self, chosen: Chosen) -> Floats:
        """Operations of an epoch with each set; see :func:`strategies.stages.merged`."""
        stages = [(s.share, set(s.layers)) for s in self.means.stages] or [(1.0, set(self.free))]
        total, carried, last = (np.zeros(chosen.shape[1]) for _ in range(3))
        for share, layers in stages:
            member = chosen & np.array([name in layers for name in self.free])[:, None]
            trains = member.any(axis=0)
            flops = self.reach_flops[member.argmax(axis=0)] + summed(self.weight_flops, member)
            total += np.where(trains, (share + carried) * flops, 0.0)
            carried = np.where(trains, 0.0, carried + share)
            last = np.where(trains, flops, last)
        return self.means.load.examples * (total + carried * last)

    def least_packet_bytes(self, chosen: Chosen) -> Counts:
        """The least packet for each set."""
        parameters = summed(self.parameters, chosen).tolist()
        buffers = summed(self.buffers, chosen).tolist()
        alone = (chosen.sum(axis=0) == 1).tolist()
        packet_bytes = self.means.packet_bytes
        return np.array(
            [
                packet_bytes(count, size, alone=one)
                for count, size, one in zip(parameters, buffers, alone, strict=True)
            ],
            dtype=np.int64,
        )


def summed(weights: NDArray[Any], chosen: Chosen) -> NDArray[Any]:
    """The sum of the weights of each set's layers, layer by layer in forward order."""
    total: NDArray[Any] = (weights[:, None] * chosen).sum(axis=0)
    return total


@lru_cache(maxsize=64)
def _memory(layout: Layout, batch_size: int, slots: int) -> tuple[Phase, ...]:
    """The phases of a round (:mod:`device_profiles.memory`); only what is fixed depends on p.

    Bytes are multiples of a quarter below 2^53, so sums are exact in any order.
    """
    by_first = [round_phases(layout, p, batch_size, slots) for p in range(len(layout))]
    return tuple(
        (tuple(LIBRARY_BYTES + one.fixed_bytes for one in phase), phase[0].layer_bytes)
        for phase in zip(*by_first, strict=True)
    )


@lru_cache(maxsize=64)
def _reach(layout: Layout) -> tuple[float, ...]:
    """F of all layers, dX of those above, and the part of dX inside (device_profiles.cost)."""
    forward = sum(layer.costs.forward_flops for layer in layout)
    above, reach = 0.0, []
    for layer in reversed(layout.layers):
        reach.append(forward + above + layer.costs.inner_grad_flops)
        above += layer.costs.input_grad_flops
    return tuple(reversed(reach))
