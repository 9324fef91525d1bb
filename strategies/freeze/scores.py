"""FedFreeze's numbers per layer: stability, gain, and the fused score. Pure functions.

Symbols as in the FedFreeze text: S stability, I importance, R resource affinity, G collaborative
gain, FS fused score. ``None`` means that nothing was observed yet; it is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Weights:
    """The weights (a, b, c, d) of the fused score."""

    stability: float = 0.3
    importance: float = 0.3
    affinity: float = 0.2
    gain: float = 0.2


def normalised(values: Mapping[str, float]) -> dict[str, float]:
    """Min-max over the layers; all equal gives 0.5, never NaN.

    >>> normalised({"a": 1.0, "b": 3.0, "c": 2.0})
    {'a': 0.0, 'b': 1.0, 'c': 0.5}
    >>> normalised({"a": 7.0, "b": 7.0})
    {'a': 0.5, 'b': 0.5}
    """
    if not values:
        return {}
    low, high = min(values.values()), max(values.values())
    if not high > low:
        return dict.fromkeys(values, 0.5)
    return {name: (value - low) / (high - low) for name, value in values.items()}


def stability(observed: Sequence[float]) -> float | None:
    """Mean relative movement over the rounds in which the layer was trained; small = settled.

    Rounds in which a layer was frozen are not observations: counting them as 0 would keep it
    frozen for ever.

    >>> stability([0.25, 0.75])
    0.5
    """
    return sum(observed) / len(observed) if observed else None


def gain(
    before: float, *, loss_fall: float, trained_share: float, step_share: float, keep: float
) -> float:
    """Moving average of what training a layer bought.

    ``G <- g G + (1 - g) clip(dF, -1, 1) a_l s_l``.

    Args:
        before: G so far.
        loss_fall: fall of the validation loss in this round.
        trained_share: a_l, weight of the clients that trained the layer among all used.
        step_share: s_l, the layer's share of the squared norm of the global step.
        keep: g.
    """
    clipped = max(-1.0, min(1.0, loss_fall))
    return keep * before + (1 - keep) * clipped * trained_share * step_share


def fused(
    *,
    stability: Mapping[str, float],
    importance: Mapping[str, float],
    affinity: Mapping[str, bool],
    gain: Mapping[str, float],
    weights: Weights,
) -> dict[str, float]:
    """``FS = a (1 - N(S)) + b (1 - N(I)) + c (1 - R) + d (1 - N(G))``; high = freeze.

    All four mappings have the same layers; N is :func:`normalised`.

    >>> scores = fused(
    ...     stability={"a": 0.01, "b": 0.05, "c": 0.20},
    ...     importance={"a": 0.1, "b": 0.4, "c": 1.0},
    ...     affinity={"a": True, "b": True, "c": False},
    ...     gain={"a": 0.02, "b": 0.10, "c": 0.05},
    ...     weights=Weights(),
    ... )
    >>> {name: round(score, 10) for name, score in scores.items()}
    {'a': 0.8, 'b': 0.4368421053, 'c': 0.325}
    """
    s, i, g = normalised(stability), normalised(importance), normalised(gain)
    return {
        name: weights.stability * (1 - s[name])
        + weights.importance * (1 - i[name])
        + weights.affinity * (0.0 if affinity[name] else 1.0)
        + weights.gain * (1 - g[name])
        for name in stability
    }
