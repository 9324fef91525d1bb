"""What a caller asks of a packet beyond its budget: floors, gains, fixed density or bits.

Weights are relative: an error in a tensor of weight w has w times the price of one in a tensor of
weight 1, and only their ratios count. A gain of g makes the step 2^g times finer, which fits a
weight 4^g times the smallest one. Ratios are rounded to powers of 4; those beyond ``4**MAX_GAIN``
cannot be told apart: whatever weighs less than the largest weight by more than that counts as if
it weighed so much less. So of a wide range the heavy end is right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compression.bits import Bools
from compression.packet import refusal
from compression.quantise import MAX_GAIN
from compression.segments import Ints, Segments
from compression.settings import CodecSettings
from fedfreeze.layout import TensorSpec

# How much an error in a tensor counts, as one weight or one for each of its rows.
Weights = Mapping[str, "float | NDArray[np.float64]"]


@dataclass(frozen=True)
class Wishes:
    """What the search must honour.

    Attributes:
        settings: of the run.
        floors: least kept values of some layers, by their number among the covered ones.
        gains: exponents by number of the tensor, where one is above 0: one, or one for each row.
    """

    settings: CodecSettings
    floors: Mapping[int, int] = field(default_factory=dict)
    gains: Mapping[int, Ints] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        segments: Segments,
        settings: CodecSettings,
        floors: Mapping[str, int],
        importance: Weights,
    ) -> Wishes:
        """Read floors and weights for the covered layers; others are passed over.

        Raises:
            PacketError: a floor below 0, or a weight that is not finite and positive, or not one
                for each row.
        """
        for layer, least in floors.items():
            if least < 0:
                raise refusal(
                    f"a floor of 0 or more for layer {layer!r}", str(least), "raise the floor"
                )
        numbers = {name: number for number, name in enumerate(segments.layers)}
        return cls(
            settings,
            {numbers[name]: least for name, least in floors.items() if name in numbers and least},
            _gains(segments, importance),
        )

    def alone(self, segments: Segments) -> Bools:
        """Tensors that must not share a coding unit: with a gain for each row, or a floor."""
        owners = segments.owners.tolist()
        by_row = {number for number, gain in self.gains.items() if len(gain) > 1}
        return np.array([n in by_row or o in self.floors for n, o in enumerate(owners)], bool)

    def unit_gains(self, segments: Segments) -> Ints:
        """The gain of each tensor, for only equals may share a unit; 0 where rows have theirs."""
        gains = np.zeros(len(segments.parameters), np.int64)
        for number, gain in self.gains.items():
            gains[number] = gain[0] if len(gain) == 1 else 0
        return gains


def _gains(segments: Segments, importance: Weights) -> dict[int, Ints]:
    """Weights of all covered tensors as powers of four above the smallest, which has none."""
    weights: dict[int, NDArray[np.float64]] = {}
    weighed = False
    for number, (tensor, owner) in enumerate(
        zip(segments.parameters, segments.owners.tolist(), strict=True)
    ):
        given = importance.get(tensor.name, importance.get(segments.layers[owner]))
        weighed |= given is not None
        array = np.ones(1) if given is None else _weights(tensor, given)
        if segments.sizes[number]:
            weights[number] = array
    if not weighed or not weights:
        return {}
    least = min(float(array.min()) for array in weights.values())
    powers = {number: _powers_of_four(array, least) for number, array in weights.items()}
    most = max(int(power.max()) for power in powers.values())
    gains = {}
    for number, power in powers.items():
        gain = np.maximum(power - max(most - MAX_GAIN, 0), 0)
        if gain.any():
            gains[number] = gain if (gain != gain[0]).any() else gain[:1]
    return gains


def _weights(tensor: TensorSpec, given: float | NDArray[np.float64]) -> NDArray[np.float64]:
    array = np.atleast_1d(np.asarray(given, np.float64))
    if array.shape not in {(1,), tensor.shape[:1]}:
        raise refusal(
            f"one weight or {tensor.shape[0] if tensor.shape else 1} for {tensor.name!r}",
            " x ".join(map(str, array.shape)),
            "give a weight for each row of the tensor",
        )
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise refusal(
            f"positive, finite weights for {tensor.name!r}",
            str(array.min()),
            "leave out what does not count",
        )
    return array


def _powers_of_four(weights: NDArray[np.float64], least: float) -> Ints:
    """The nearest power of 4 to each weight over ``least``, halves up; exact, without logarithms.

    >>> _powers_of_four(np.array([1.0, 1.9, 2.0, 4.0, 7.9, 8.0]), 1.0).tolist()
    [0, 0, 1, 1, 1, 2]
    """
    mantissas, exponents = np.frexp(weights)
    mantissa, exponent = math.frexp(least)
    octaves = exponents.astype(np.int64) - exponent - (mantissas < mantissa)
    powers: Ints = (octaves + 1) // 2
    return powers
