"""How far a run's predictions were off, for a person to read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

# What any run can tell stands in the first line, what takes real boards in the second.
_LINES = (
    (("upload_bytes", "bytes up"), ("download_bytes", "bytes down")),
    (
        ("memory_bytes", "memory"),
        ("compute_s", "compute"),
        ("download_s", "download"),
        ("upload_s", "upload"),
        ("energy_j", "joules"),
    ),
)


def predictions_of(summary: Mapping[str, Any] | None) -> dict[str, dict[str, float]]:
    """The ``predictions`` of a run's summary; what is not one of them is left out.

    >>> predictions_of({"predictions": {"upload_bytes": {"count": 3}, "energy_j": 7}})
    {}
    """
    found = None if summary is None else summary.get("predictions")
    if not isinstance(found, dict):
        return {}
    return {quantity: dict(of) for quantity, of in found.items() if _is_one(of)}


def prediction_lines(predictions: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A line for bytes and one for what boards measured; none where nothing was.

    >>> off = {"count": 30, "median_error": 0.081, "worst_error": -0.214}
    >>> prediction_lines({"upload_bytes": off})
    ['predicted  bytes up 8.1 % off (worst -21 % of 30)']
    """
    lines = [line for names in _LINES if (line := _line(names, predictions))]
    return [f"{'' if at else 'predicted':<10} {line}" for at, line in enumerate(lines)]


def _line(names: Sequence[tuple[str, str]], predictions: Mapping[str, Mapping[str, float]]) -> str:
    return ", ".join(
        f"{word} {_percent(of['median_error'])} off "
        f"(worst {_percent(of['worst_error'], '+')} of {of['count']:.0f})"
        for quantity, word in names
        if (of := predictions.get(quantity)) is not None
    )


def _percent(share: float, sign: str = "") -> str:
    """Two digits where there are two to tell.

    >>> _percent(0.081), _percent(0.5), _percent(-0.12, "+"), _percent(0.0004)
    ('8.1 %', '50 %', '-12 %', '0.0 %')
    """
    digits = 1 if abs(share) < 0.0995 else 0
    return f"{100 * share:{sign}.{digits}f} %"


def _is_one(of: Any) -> bool:
    if not isinstance(of, dict) or set(of) != {"count", "median_error", "worst_error"}:
        return False
    return all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        for value in of.values()
    )
