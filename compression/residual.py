"""Error feedback: what was meant to be sent and has not been sent yet.

A round forms ``u = delta + r``, sends the packet of u, and keeps ``r = u - decode(packet)``. Both
steps round to float32, so after T rounds the ledger ``sum(sent) + r = sum(delta)`` is off by at
most ``2^-24 * sum_t (|u_t| + |r_t|)`` for each value (Karimireddy et al. 2019 give the method).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import LayoutError

Floats = NDArray[np.float32]
Tensors = Mapping[str, Floats]


def add(residual: Tensors, delta: Tensors) -> dict[str, Floats]:
    """``residual + delta`` in float32, over the tensors of both; an absent tensor is zero.

    Raises:
        LayoutError: a tensor has two shapes.
    """
    return _combine(residual, delta, np.add)


def subtract(update: Tensors, decoded: Tensors) -> dict[str, Floats]:
    """``update - decoded`` in float32, over the tensors of both; an absent tensor is zero.

    Raises:
        LayoutError: a tensor has two shapes.
    """
    return _combine(update, decoded, np.subtract)


def scaled(residual: Tensors, factors: Mapping[str, float]) -> dict[str, Floats]:
    """Each tensor times its factor, from 0 to 1, in float32.

    A factor is rounded to float32 first, so each product is off by at most ``2^-23`` of itself (or
    half of float32's smallest value). A tensor with factor 0 is left out: absent is zero. One
    without a factor stays as it is.

    >>> {name: array.tolist() for name, array in scaled(
    ...     {"a": np.float32([2, 4]), "b": np.float32([1])}, {"a": 0.5, "b": 0.0}).items()}
    {'a': [1.0, 2.0]}
    """
    out: dict[str, Floats] = {}
    for name in residual:
        factor = np.float32(factors.get(name, 1.0))
        if factor == 1:
            out[name] = residual[name]
        elif factor > 0:
            out[name] = np.asarray(factor * residual[name], np.float32)
    return out


def _combine(
    left: Tensors, right: Tensors, operation: Callable[[Floats, Floats], Floats]
) -> dict[str, Floats]:
    out: dict[str, Floats] = {}
    for name in dict.fromkeys([*left, *right]):
        a, b = (side.get(name) for side in (left, right))
        a = np.zeros_like(b, np.float32) if a is None else np.asarray(a, np.float32)
        b = np.zeros_like(a, np.float32) if b is None else np.asarray(b, np.float32)
        if a.shape != b.shape:
            raise LayoutError(
                f"tensor {name!r}: expected shape {list(a.shape)} as in the residual or update, "
                f"got {list(b.shape)}; a residual belongs to one model"
            )
        # An overflow becomes infinity here and is refused by name when it is encoded.
        with np.errstate(over="ignore"):
            out[name] = np.asarray(operation(a, b), np.float32)
    return out
