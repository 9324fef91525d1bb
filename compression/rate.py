"""What a step costs: a model of the packet's size, good to some per cent, from one histogram.

The dead zone of a tensor follows its density. Where all share a step Δ, one more bit saves
``2 ln 2 Δ²/12 = 0.1155 Δ²`` of squared error (high-rate quantisation, reverse water-filling), so a
value earns its bits where ``v² >= 0.1155 Δ² bits``, that is ``θ = 0.34 sqrt(bits)`` with ``bits``
for its position, its sign and its magnitude. Fineness multiplies θ: fewer values, each nearer to
what it was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compression.entropy import ENERGY_PER_BIT
from compression.quantise import LARGEST_FLOAT, SMALLEST_STEP
from compression.segments import Floats, Ints

Doubles = NDArray[np.float64]

_MANTISSA_SHIFT = 19  # keeps 4 bits of the mantissa: 16 bins an octave
_OCTAVES = 22
_BINS = _OCTAVES << (23 - _MANTISSA_SHIFT)
_SAMPLE = 1 << 13  # values of a tensor that the histogram looks at
_SMALLEST_ZONE, _LARGEST_ZONE = 0.5, 2.0
_CELL_BITS = 0.6  # of a magnitude, where nothing better is known
_COARSE = 2  # steps looked at in an octave
_POINTS = 17  # thresholds looked at, first everywhere, then around the right one
_ROW_BITS = 40.0  # a row of the table
_STEP_RANGE = 2.0**19  # largest value over smallest step


class RateModel:
    """Modelled bits as a function of the step.

    Args:
        magnitudes: absolute values of the parameters, or of the shared positions alone.
        counts: how many of them each tensor has.
        largest: of the magnitudes.
        shared: whether all of them are sent, at positions that both ends know.
        fineness: 1 or more.
    """

    def __init__(
        self,
        magnitudes: Floats,
        counts: Ints,
        largest: float,
        *,
        shared: bool,
        fineness: float = 1.0,
    ) -> None:
        self._sizes = counts.astype(np.float64)
        self._shared = shared
        self._fineness = fineness
        largest_step = min(max(2 * largest, SMALLEST_STEP), LARGEST_FLOAT)
        smallest_step = max(largest / _STEP_RANGE, SMALLEST_STEP)
        self.finest, self.coarsest = float(np.log2(smallest_step)), float(np.log2(largest_step))
        """Log2 of the smallest and the largest step that there is a use for."""
        self._lowest = int(np.float32(largest).view(np.uint32) >> _MANTISSA_SHIFT) + 1 - _BINS
        self._above = self._histogram(magnitudes, counts)

    def dead_zones(self, step: float) -> Doubles:
        """The dead zone of every tensor in steps, for one step; 0 where positions are shared."""
        zones = np.zeros(len(self._sizes))
        if self._shared:
            return zones
        zones += 1.0
        for _ in range(3):
            zones = self._zones(self._count(zones[None, :] * step)[0])
        return zones

    def opening(self, bits: float) -> tuple[Doubles, float]:
        """Zones and log2 of a step with which about so many bits are sent.

        All tensors keep what lies above one magnitude. Zones that followed the step instead would
        jump where many values are about equal: nothing is worth its bits, or everything.
        """
        places = np.linspace(self.finest, self.coarsest, _POINTS)
        for turn in range(2):
            kept = self._count(np.repeat(np.exp2(places)[:, None], len(self._sizes), axis=1))
            spent = self._bits(kept, np.full_like(kept, _CELL_BITS))
            found = float(np.interp(-bits, -np.maximum.accumulate(spent[::-1])[::-1], places))
            if turn == 0:
                between = float(places[1] - places[0])
                places = np.linspace(found - between, found + between, _POINTS)
        place = min(max(found, self.finest), self.coarsest)
        chosen = self._count(np.full((1, len(self._sizes)), np.exp2(place)))[0]
        zones = self._zones(chosen)
        mean = float((zones * chosen).sum() / max(chosen.sum(), 1e-9)) or 1.0
        return zones, float(place - np.log2(max(mean, 0.1)))

    def curve(self, zones: Doubles) -> tuple[Doubles, Doubles]:
        """Log2 of some ascending steps and of the bits at each under fixed zones; never rises."""
        points = int(_COARSE * (self.coarsest - self.finest)) + 2
        exponents = np.linspace(self.finest, self.coarsest, points)
        steps = np.exp2(exponents)[:, None]
        if self._shared:
            kept = np.broadcast_to(self._sizes, (len(steps), len(self._sizes)))
            bits = (kept * (1 + self._cell_bits(kept, steps))).sum(axis=1)
        else:
            kept = self._count(zones * steps)
            bits = self._bits(kept, self._cell_bits(kept, (zones + 1) * steps))
        return exponents, np.log2(np.maximum.accumulate(bits[::-1])[::-1] + 1)

    def _histogram(self, magnitudes: Floats, counts: Ints) -> Doubles:
        """Values of each tensor in each bin or above it, shape ``(tensors, bins + 1)``."""
        # An odd stride does not fall in step with the rows of a tensor.
        ends = np.cumsum(counts).tolist()
        samples = [
            magnitudes[last - size : last : size // _SAMPLE | 1]
            for last, size in zip(ends, counts.tolist(), strict=True)
        ]
        lengths = np.array([len(sample) for sample in samples], np.int64)
        bits = np.concatenate([np.zeros(0, np.float32), *samples]).view(np.int32)
        bins = np.maximum((bits >> _MANTISSA_SHIFT) - self._lowest, 0)
        bins += np.repeat(np.arange(0, _BINS * len(counts), _BINS, dtype=np.int32), lengths)
        found = np.bincount(bins, minlength=_BINS * len(counts)).reshape(len(counts), _BINS)
        above = np.zeros((len(counts), _BINS + 1))
        above[:, :_BINS] = np.cumsum(found[:, ::-1], axis=1)[:, ::-1]
        above *= (counts / np.maximum(lengths, 1))[:, None]
        return above

    def _zones(self, kept: Doubles) -> Doubles:
        """The dead zone of every tensor for so many kept values, shape ``(tensors,)``."""
        density = np.clip(kept, 0.5, self._sizes - 0.5) / np.maximum(self._sizes, 1)
        position_bits = np.maximum(np.log2(1 / np.maximum(density, 1e-12) - 1 + 1e-12), 0)
        zones = np.sqrt(ENERGY_PER_BIT * (position_bits + 1 + _CELL_BITS))
        return np.clip(zones, _SMALLEST_ZONE, _LARGEST_ZONE) * self._fineness

    def _bits(self, kept: Doubles, cell_bits: Doubles) -> Doubles:
        """Bits in all for kept values of shape ``(steps, tensors)``."""
        where = self._sizes * _entropy(kept / np.maximum(self._sizes, 1))
        each = where + kept * (1 + cell_bits) + _ROW_BITS * np.minimum(kept, 1)
        total: Doubles = each.sum(axis=1)
        return total

    def _count(self, thresholds: Doubles) -> Doubles:
        """Values at or above thresholds of shape ``(steps, tensors)``."""
        clipped = np.minimum(thresholds, LARGEST_FLOAT).astype(np.float32)
        place = clipped.view(np.uint32) / 2.0**_MANTISSA_SHIFT - self._lowest
        place = np.clip(place, 0, _BINS - 1e-6)
        low = place.astype(np.int64)
        tensor = np.arange(len(self._above))
        at, after = self._above[tensor, low], self._above[tensor, low + 1]
        return at + (place - low) * (after - at)

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
