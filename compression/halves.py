"""Float16 with a power of two for each tensor: half the bytes, and nothing becomes infinite.

A tensor is stored as ``q * 2^e``, q in float16 and e so that the largest value lies in float16's
highest binade, [2^15, 2^16). What would round beyond it is clipped to 65504. So for each value

    |x - q 2^e| <= 2^-11 |x| + 2^-40 max|x|

half a unit in the last of 11 bits, or half of float16's smallest step where x is so much smaller
than the largest value. Over a tensor of n values the l2 norm of what is lost is therefore at most
``2^-11 ||x|| + 2^-40 sqrt(n) max|x|``. Rounding what is rounded already changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import PacketError

Floats = NDArray[np.float32]

_LARGEST = 65504.0  # of float16
_TOP_EXPONENT = 16  # float16's values lie below 2^16


@dataclass(frozen=True)
class Half:
    """One tensor: ``values * 2^exponent``."""

    values: NDArray[np.float16]
    exponent: int

    @classmethod
    def of(cls, array: Floats) -> Half:
        """The nearest such tensor; see the module for the bound.

        Raises:
            ValueError: a value is not finite.
        """
        top = float(np.max(np.abs(array), initial=0))
        if not math.isfinite(top):
            raise ValueError("expected finite values, got NaN or infinity")
        exponent = math.frexp(top)[1] - _TOP_EXPONENT if top else 0
        scaled = np.ldexp(np.asarray(array, np.float32), -exponent)
        clipped = np.clip(scaled, -_LARGEST, _LARGEST)
        return cls(np.asarray(clipped, np.float16), exponent)

    def floats(self) -> Floats:
        """The tensor in float32, exactly."""
        return np.asarray(np.ldexp(self.values.astype(np.float32), self.exponent), np.float32)


class Halves(Mapping[str, Floats]):
    """Tensors that are kept in float16 and read as float32, one at a time.

    Args:
        tensors: by name.
    """

    def __init__(self, tensors: Mapping[str, Half]) -> None:
        self.tensors = dict(tensors)

    def __getitem__(self, name: str) -> Floats:
        return self.tensors[name].floats()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


def halved(arrays: Mapping[str, Floats]) -> tuple[Halves, float]:
    """The arrays in float16, and the l2 norm of what rounding lost.

    Raises:
        PacketError: a value is not finite, as after an overflow.

    >>> kept, lost = halved({"w": np.float32([1, 1 + 2**-12])})
    >>> kept["w"].tolist(), lost == 2**-12
    ([1.0, 1.0], True)
    """
    tensors, lost = {}, 0.0
    for name in sorted(arrays):  # so that the sum does not depend on who read them
        array = arrays[name]
        try:
            tensors[name] = Half.of(array)
        except ValueError as error:
            raise PacketError(
                f"tensor {name!r} of the residual: {error}; "
                "training has diverged: lower the learning rate or clip gradients"
            ) from error
        off = array.astype(np.float64) - tensors[name].floats()
        lost += float(np.square(off).sum())
    return Halves(tensors), math.sqrt(lost)
