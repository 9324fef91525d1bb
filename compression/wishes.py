"""What a caller asks of a packet beyond its budget: floors, gains, fixed density or bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compression.bits import Bools
from compression.packet import refusal
from compression.quantise import MAX_GAIN
from compression.segments import Ints, Segments
from compression.settings import CodecSettings

# How much an error in a tensor counts, as one weight or one for each of its rows.
Weights = Mapping[str, "float | NDArray[np.float64]"]


@dataclass(frozen=True)
class Wishes:
    """What the search must honour.

    Attributes:
        settings: of the run.
        floors: least kept values of some layers, by their number among the covered ones.
        gains: exponents by number of the tensor: one, or one for each row.
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
        """Tensors that must not share a coding unit."""
        owners = segments.owners.tolist()
        return np.array([n in self.gains or o in self.floors for n, o in enumerate(owners)], bool)


def _gains(segments: Segments, importance: Weights) -> dict[int, Ints]:
    """Weights as powers of four above the smallest: an error of weight w has w times the price."""
    weights: dict[int, NDArray[np.float64]] = {}
    for number, (tensor, owner) in enumerate(
        zip(segments.parameters, segments.owners.tolist(), strict=True)
    ):
        given = importance.get(tensor.name, importance.get(segments.layers[owner]))
        if given is None:
            continue
        array = np.atleast_1d(np.asarray(given, np.float64))
        if len(array) > 1 and array.shape != tensor.shape[:1]:
            raise refusal(
                f"one weight or {tensor.shape[0] if tensor.shape else 1} for {tensor.name!r}",
                str(len(array)),
                "give a weight for each row of the tensor",
            )
        if not (np.isfinite(array).all() and (array > 0).all()):
            raise refusal(
                f"positive, finite weights for {tensor.name!r}",
                str(array.min()),
                "leave out what does not count",
            )
        weights[number] = array
    gains = {}
    for number, array in weights.items():
        if segments.sizes[number]:
            gain = np.clip(np.rint(np.log2(array) / 2), 0, MAX_GAIN).astype(np.int64)
            if gain.any():
                gains[number] = gain if len(gain) > 1 and (gain != gain[0]).any() else gain[:1]
    return gains
