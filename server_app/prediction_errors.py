"""How far predictions were off, over all clients and rounds of a run.

It is counted from the audit log, which a resumed run has cut back to its checkpoint, so that each
round counts once.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Mapping
from typing import Any

from server_app.cost_table import QUANTITIES


class PredictionErrors:
    """Relative errors, ``modelled / measured - 1``, of every quantity that was measured."""

    def __init__(self) -> None:
        self._magnitudes: dict[str, list[float]] = {}
        self._worst: dict[str, float] = {}

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Count the records of ``decisions.jsonl`` in, in their order."""
        for record in records:
            table = record.get("cost")
            if not isinstance(table, dict):
                continue
            for quantity in QUANTITIES:
                error = _error(table.get(quantity))
                if error is not None:
                    insort(self._magnitudes.setdefault(quantity, []), abs(error))
                    if abs(error) > abs(self._worst.get(quantity, 0.0)):
                        self._worst[quantity] = error

    def summary(self) -> dict[str, Any]:
        """For ``status.json``, under ``predictions``; nothing where nothing was measured.

        For each quantity ``count``, how often both numbers are known; ``median_error``, the median
        of the errors' sizes; ``worst_error``, the largest with its sign, above 0 where too much was
        predicted.
        """
        predictions = {
            quantity: {
                "count": len(sizes),
                "median_error": (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2,
                "worst_error": self._worst.get(quantity, 0.0),
            }
            for quantity in QUANTITIES
            if (sizes := self._magnitudes.get(quantity))
        }
        return {"predictions": predictions} if predictions else {}


def _error(row: Any) -> float | None:
    """None where a number is missing, or nothing was measured to be off from."""
    if not isinstance(row, dict):
        return None
    modelled, measured = _number(row.get("modelled")), _number(row.get("measured"))
    if modelled is None or measured is None or measured <= 0:
        return None
    error = modelled / measured - 1.0
    return error if math.isfinite(error) else None


def _number(value: Any) -> float | None:
    # A file that somebody has edited may hold numbers that no float does.
    is_one = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18
    return value if is_one else None
