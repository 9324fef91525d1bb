"""What all ways to divide share: the type of a part, and that none may be empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
# One client's positions, in any order.
Part = list[np.int64]

# A draw from concentrations above this is its mean to all digits, and sums of them overflow.
_EVEN = 1e100


def by_class(labels: NDArray[Any]) -> list[Indices]:
    """Positions of each class, classes in ascending order.

    >>> [members.tolist() for members in by_class(np.array([7, 2, 7]))]
    [[1], [0, 2]]
    """
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def shares(concentrations: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """One draw from a Dirichlet distribution; where it leaves the numbers, its limit.

    That is one who has all for tiny concentrations, and the mean for huge ones.
    """
    largest = concentrations.max()
    if largest > _EVEN:
        means = concentrations / largest
        even: NDArray[np.float64] = means / means.sum()
        return even
    drawn = rng.dirichlet(concentrations)
    if not np.isfinite(drawn).all():
        drawn = np.eye(len(concentrations))[rng.integers(len(concentrations))]
    return drawn


def cut(positions: Indices, portions: NDArray[np.float64]) -> list[Indices]:
    """The positions cut, in their order, in proportion to ``portions``, which sum to 1."""
    cuts = np.rint(np.cumsum(portions)[:-1] * len(positions)).astype(np.int64)
    return np.split(positions, cuts)


def without_empty(parts: Sequence[Part]) -> list[Part]:
    """Every empty part gets one example of the largest one.

    The first of equally large parts gives, so that all runs agree. There must be as many examples
    as parts.
    """
    for part in parts:
        if not part:
            part.append(max(parts, key=len).pop())
    return list(parts)
