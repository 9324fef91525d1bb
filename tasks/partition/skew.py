"""Clients that differ in their mix of classes, in their number of examples, or in both."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.partition.parts import Indices, Part, by_class, cut, shares, without_empty


def label_skew(
    positions: Indices,
    labels: NDArray[Any],
    clients: int,
    *,
    alpha: float,
    rng: np.random.Generator,
) -> list[Part]:
    """Each class divided by shares drawn from Dir(alpha) over clients (Yurochkin et al., 2019).

    Args:
        positions: of the examples to divide.
        labels: their classes.
        clients: at most as many as examples.
        alpha: small is skewed, large is even.
        rng: all randomness.
    """
    return _by_shares(positions, labels, np.full(clients, alpha), rng)


def quantity_skew(
    positions: Indices, clients: int, *, alpha: float, rng: np.random.Generator
) -> list[Part]:
    """The shuffled examples cut by shares drawn from Dir(alpha) (Li et al., 2022, section III).

    Every client has about the same mix of classes; small ``alpha`` makes few clients hold most.
    """
    pieces = cut(rng.permutation(positions), shares(np.full(clients, alpha), rng))
    return without_empty([list(piece) for piece in pieces])


def label_and_quantity_skew(
    positions: Indices,
    labels: NDArray[Any],
    clients: int,
    *,
    alpha: float,
    quantity_alpha: float,
    rng: np.random.Generator,
) -> list[Part]:
    """Sizes q drawn from Dir(quantity_alpha), then each class divided by Dir(alpha · clients · q).

    Such shares have mean q, so that a client that drew twice the size expects twice the examples of
    each class; for a large ``quantity_alpha`` this is :func:`label_skew`.
    """
    sizes = shares(np.full(clients, quantity_alpha), rng)
    # numpy wants concentrations above 0; a client that drew no size gets next to none of a class.
    limits = np.finfo(np.float64)
    with np.errstate(over="ignore"):
        concentrations = np.clip(alpha * (clients * sizes), limits.tiny, limits.max)
    return _by_shares(positions, labels, concentrations, rng)


def _by_shares(
    positions: Indices,
    labels: NDArray[Any],
    concentrations: NDArray[np.float64],
    rng: np.random.Generator,
) -> list[Part]:
    parts: list[Part] = [[] for _ in concentrations]
    for members in by_class(labels):
        portions = shares(concentrations, rng)
        pieces = cut(rng.permutation(positions[members]), portions)
        for part, piece in zip(parts, pieces, strict=True):
            part.extend(piece)
    return without_empty(parts)
