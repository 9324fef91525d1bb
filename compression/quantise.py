"""The quantiser: one step for all layers, a dead zone of its own for each layer.

With step Δ and dead zone θ, a value v is kept where ``|v| >= θΔ`` and lies in cell
``m = floor(|v|/Δ - θ)``. Cells m >= 1 are restored at their middle, ``(θ + m + 1/2)Δ``; cell 0 at
``(θ + o)Δ``, where the layer sends o, because values crowd towards the threshold there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

SMALLEST_STEP = float(np.finfo(np.float32).smallest_normal)
LARGEST_FLOAT = float(np.finfo(np.float32).max)
DEAD_ZONE_UNIT = 64  # dead zones are sent in 1/64 of the step
OFFSET_UNIT = 256  # offsets in 1/256
MAX_CELL = 2**20  # error feedback carries what lies beyond


@dataclass(frozen=True)
class Quantised:
    """Kept values of some layers, as the packet carries them.

    Attributes:
        step: Δ, a float32 value.
        counts: kept values of each layer.
        dead_zones: θ of each layer in 1/64.
        offsets: o of each layer in 1/256.
        indices: of the kept values in the flat vector, ascending.
        negative: whether each kept value is below 0.
        cells: m of each kept value.
    """

    step: float
    counts: Ints
    dead_zones: Ints
    offsets: Ints
    indices: Ints
    negative: NDArray[np.bool_]
    cells: Ints


def quantise(
    values: Floats, indices: Ints, counts: Ints, dead_zones: Ints, step: float
) -> Quantised:
    """Quantise the values at ``indices``; those inside the dead zone fall in cell 0."""
    kept = values[indices]
    layer = np.repeat(np.arange(len(counts)), counts)
    above = np.abs(kept).astype(np.float64) / step - (dead_zones / DEAD_ZONE_UNIT)[layer]
    cells = np.clip(np.floor(above), 0, MAX_CELL).astype(np.int64)
    first = cells == 0
    sums = np.bincount(layer[first], weights=above[first], minlength=len(counts))
    numbers = np.bincount(layer[first], minlength=len(counts))
    means = sums / np.maximum(numbers, 1)
    offsets = np.clip(np.rint(means * OFFSET_UNIT), 0, OFFSET_UNIT - 1).astype(np.int64)
    return Quantised(step, counts, dead_zones, offsets, indices, np.signbit(kept), cells)


def restore(quantised: Quantised) -> Floats:
    """The values that the receiver sees; always finite."""
    layer = np.repeat(np.arange(len(quantised.counts)), quantised.counts)
    offset = (quantised.offsets / OFFSET_UNIT)[layer]
    inside = np.where(quantised.cells == 0, offset, quantised.cells + 0.5)
    magnitude = ((quantised.dead_zones / DEAD_ZONE_UNIT)[layer] + inside) * quantised.step
    restored = np.minimum(magnitude, LARGEST_FLOAT).astype(np.float32)
    return np.where(quantised.negative, -restored, restored)
