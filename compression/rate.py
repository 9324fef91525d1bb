"""What a step costs: a model of the packet's size, good to some per cent, from one histogram.

The dead zone of a layer follows its density. Where all layers share a step Δ, one more bit saves
``2 ln 2 Δ²/12 = 0.1155 Δ²`` of squared error (high-rate quantisation, reverse water-filling), so a
value earns its bits where ``v² >= 0.1155 Δ² bits``, that is ``θ = 0.34 sqrt(bits)`` with ``bits``
for its position, its sign and its magnitude.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compression.quantise import DEAD_ZONE_UNIT, LARGEST_FLOAT, SMALLEST_STEP
from compression.segments import Floats, Ints

Doubles = NDArray[np.float64]

_MANTISSA_SHIFT = 19  # keeps 4 bits of the mantissa: 16 bins an octave
_OCTAVES = 22
_BINS = _OCTAVES << (23 - _MANTISSA_SHIFT)
_SAMPLE = 1 << 16  # values of a layer that the histogram looks at
_SMALLEST_ZONE, _LARGEST_ZONE = 0.5, 2.0
_LAYER_BITS = 32.0  # a layer's share of the table
_STEP_RANGE = 2.0**16  # largest value over smallest step


class RateModel:
    """Modelled bits as a function of the step.

    Args:
        magnitudes: absolute values of the parameters, or of the shared positions alone.
        counts: how many of them each layer has.
        shared: whether all of them are sent, at positions that both ends know.
    """

    def __init__(self, magnitudes: Floats, counts: Ints, *, shared: bool) -> None:
        self._sizes = counts.astype(np.float64)
        self._shared = shared
        largest = float(magnitudes.max(initial=0.0))
        self.largest_step = min(max(2 * largest, SMALLEST_STEP), LARGEST_FLOAT)
        self.smallest_step = max(largest / _STEP_RANGE, SMALLEST_STEP)
        self._lowest = int(np.float32(largest).view(np.uint32) >> _MANTISSA_SHIFT) + 1 - _BINS
        self._above = np.zeros((len(counts), _BINS + 1))
        for layer, part in enumerate(np.split(magnitudes, np.cumsum(counts)[:-1])):
            # An odd stride does not fall in step with the rows of a tensor.
            sample = part[:: len(part) // _SAMPLE | 1]
            bins = (sample.view(np.uint32) >> _MANTISSA_SHIFT).astype(np.int64) - self._lowest
            histogram = np.bincount(np.maximum(bins, 0), minlength=_BINS)
            scale = len(part) / max(len(sample), 1)
            self._above[layer, :_BINS] = np.cumsum(histogram[::-1])[::-1] * scale

    def dead_zones(self, step: float) -> Ints:
        """The dead zone of every layer in 1/64, for one step; 0 where positions are shared."""
        zones, _ = self._evaluate(np.array([step]))
        in_units: Ints = np.rint(zones[0] * DEAD_ZONE_UNIT).astype(np.int64)
        return in_units

    def curve(self) -> tuple[Doubles, Doubles]:
        """Log2 of some ascending steps and log2 of the bits at each, which never rise."""
        low, high = np.log2(self.smallest_step), np.log2(self.largest_step)
        exponents = np.linspace(low, high, int(2 * (high - low)) + 2)
        _, bits = self._evaluate(np.exp2(exponents))
        return exponents, np.log2(np.maximum.accumulate(bits[::-1])[::-1] + 1)

    def _count(self, thresholds: Doubles) -> Doubles:
        """Values at or above thresholds of shape ``(steps, layers)``."""
        clipped = np.minimum(thresholds, LARGEST_FLOAT).astype(np.float32)
        place = clipped.view(np.uint32) / 2.0**_MANTISSA_SHIFT - self._lowest
        place = np.clip(place, 0, _BINS - 1e-6)
        low = place.astype(np.int64)
        layer = np.arange(len(self._above))
        at, after = self._above[layer, low], self._above[layer, low + 1]
        return at + (place - low) * (after - at)

    def _evaluate(self, steps: Doubles) -> tuple[Doubles, Doubles]:
        """Dead zones ``(steps, layers)`` and total bits ``(steps,)``."""
        step = steps[:, None]
        zones = np.zeros((len(steps), len(self._sizes)))
        if self._shared:
            kept = np.broadcast_to(self._sizes, zones.shape)
            return zones, (kept * (1 + self._cell_bits(kept, step))).sum(axis=1)
        zones += 1.0
        for _ in range(3):
            kept = self._count(zones * step)
            cell_bits = self._cell_bits(kept, (zones + 1) * step)
            density = np.clip(kept, 0.5, self._sizes - 0.5) / np.maximum(self._sizes, 1)
            position_bits = np.maximum(np.log2(1 / np.maximum(density, 1e-12) - 1 + 1e-12), 0)
            bits = position_bits + 1 + cell_bits
            zones = np.clip(0.34 * np.sqrt(bits), _SMALLEST_ZONE, _LARGEST_ZONE)
        kept = self._count(zones * step)
        cell_bits = self._cell_bits(kept, (zones + 1) * step)
        where = self._sizes * _entropy(kept / np.maximum(self._sizes, 1))
        total = where + kept * (1 + cell_bits) + _LAYER_BITS * np.minimum(kept, 1)
        return zones, total.sum(axis=1)

    def _cell_bits(self, kept: Doubles, second_cell: Doubles) -> Doubles:
        """Bits of a magnitude, as if cells fell off geometrically."""
        ratio = np.clip(
            self._count(second_cell + np.zeros_like(kept)) / np.maximum(kept, 1e-9), 0, 0.999
        )
        return _entropy(ratio) / (1 - ratio)


def _entropy(p: Doubles) -> Doubles:
    """Bits of a coin with probability ``p``."""
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return -p * np.log2(p) - (1 - p) * np.log2(1 - p)
