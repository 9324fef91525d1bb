"""How unevenly examples are divided among clients, in a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Skew:
    """What a division looks like; what needs classes is None without them.

    Attributes:
        smallest, median, largest: examples of a client.
        size_ratio: largest over smallest.
        total_variation: mean over clients of half the summed absolute difference between the
            client's shares of classes and those of all clients together: 0 for the same mix,
            towards 1 for clients that share no class.
        effective_classes: mean over clients of exp(entropy of its shares): as many equally common
            classes would be as mixed.
        majority_class: position of the commonest class of all clients together.
        majority_share: its share.
    """

    smallest: int
    median: float
    largest: int
    size_ratio: float
    total_variation: float | None = None
    effective_classes: float | None = None
    majority_class: int | None = None
    majority_share: float | None = None


def counts(labels: Sequence[NDArray[Any]], classes: int) -> Counts:
    """Examples of each class that each client holds, ``[clients, classes]``.

    Args:
        labels: of each client's examples, from 0.
        classes: how many there are.
    """
    return np.array([np.bincount(mine, minlength=classes) for mine in labels], np.int64)


def skew(held: Counts, *, has_classes: bool = True) -> Skew:
    """The numbers of a division.

    Args:
        held: ``[clients, classes]`` examples; no client empty.
        has_classes: without, only sizes are looked at.

    >>> skew(np.array([[6, 0], [1, 1]]))  # doctest: +ELLIPSIS
    Skew(smallest=2, median=4.0, largest=6, size_ratio=3.0, total_variation=0.25, ...)
    """
    sizes = held.sum(1)
    smallest, largest = int(sizes.min()), int(sizes.max())
    median, ratio = float(np.median(sizes)), largest / smallest
    if not has_classes:
        return Skew(smallest, median, largest, ratio)
    whole = held.sum(0) / held.sum()
    shares = held / sizes[:, None]
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return Skew(
        smallest,
        median,
        largest,
        ratio,
        total_variation=float((np.abs(shares - whole).sum(1) / 2).mean()),
        effective_classes=float(np.exp(-(shares * logs).sum(1)).mean()),
        majority_class=int(whole.argmax()),
        majority_share=float(whole.max()),
    )
