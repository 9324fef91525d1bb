"""The adaptive freeze window: additive increase, multiplicative decrease (as in APF).

A frozen layer whose absence does not hurt stays away longer; one that is missed comes back soon.
"""

from __future__ import annotations

from collections.abc import Sequence


def next_window(window: int, *, grow: bool, largest: int) -> int:
    """``min(w + 1, W_max)`` or ``max(1, floor(w / 2))``.

    >>> windows, w = [], 1
    >>> for grow in [True] * 9 + [False, True, True, False]:
    ...     w = next_window(w, grow=grow, largest=8)
    ...     windows.append(w)
    >>> windows
    [2, 3, 4, 5, 6, 7, 8, 8, 8, 4, 5, 6, 3]
    """
    return min(window + 1, largest) if grow else max(1, window // 2)


def relative_fall(losses: Sequence[float], *, lag: int) -> float | None:
    """``(L_{t-m} - L_t) / max(|L_{t-m}|, eps)``; None while fewer than ``lag + 1`` are known.

    >>> relative_fall([2.0, 1.5, 1.25, 1.0], lag=3)
    0.5
    """
    if len(losses) <= lag:
        return None
    then, now = losses[-1 - lag], losses[-1]
    return (then - now) / max(abs(then), 1e-12)
