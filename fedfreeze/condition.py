"""What a board says of its battery and its heat, beside its capacity: for people, not for plans."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from fedfreeze.errors import ProtocolError

# Of the fields that hold a number.
_BOUNDS = {
    "battery_share": (0.0, 1.0),
    "battery_j": (0.0, math.inf),
    "hottest_c": (-math.inf, math.inf),
}


@dataclass(frozen=True)
class Condition:
    """How a real board is now; None is what no sensor of it tells.

    Attributes:
        battery_share: of the battery's capacity, 0 to 1.
        battery_j: joules left in it.
        is_discharging: whether the board runs on it.
        is_slowed: whether heat or a weak supply hold the processor below its clock.
        hottest_c: of all thermal zones.
    """

    battery_share: float | None = None
    battery_j: float | None = None
    is_discharging: bool | None = None
    is_slowed: bool | None = None
    hottest_c: float | None = None

    def to_json(self) -> dict[str, float | bool]:
        """What is known, as plain values."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, data: Any) -> Condition:
        """The inverse of :meth:`to_json`, refusing anything else.

        Raises:
            ProtocolError: a field is unknown, of another type or out of range.
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(data, dict) or not set(data) <= set(names):
            raise ProtocolError(f"a condition has the fields {', '.join(names)}, got {data!r:.200}")
        for name, value in data.items():
            if name in _BOUNDS:
                low, high = _BOUNDS[name]
                good, expected = _is_between(value, low, high), f"a number from {low:g} to {high:g}"
            else:
                good, expected = isinstance(value, bool), "true or false"
            if not good:
                raise ProtocolError(f"condition.{name}: expected {expected}, got {value!r:.50}")
        return cls(**data)


def _is_between(value: Any, low: float, high: float) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and low <= value <= high and abs(value) != math.inf
