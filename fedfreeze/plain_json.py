"""JSON that every reader takes: numbers are finite, and a figure that is not is absent.

Python's own writer puts ``NaN`` and ``Infinity`` into files, which no other reader accepts.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def finite(value: Any) -> Any:
    """A JSON value without numbers that no float holds.

    Such a member of an object is left out; in an array, where places count, it becomes None.

    >>> finite({"loss": float("nan"), "bytes": 7, "scores": [0.5, float("inf")]})
    {'bytes': 7, 'scores': [0.5, None]}
    """
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items() if _holds(member)}
    if isinstance(value, list | tuple):
        return [finite(member) if _holds(member) else None for member in value]
    return value if _holds(value) else None


def text(value: Any) -> str:
    """One line of JSON.

    >>> text({"loss": float("nan"), "round": 1})
    '{"round": 1}'
    """
    return json.dumps(finite(value), allow_nan=False)


def parse(document: str) -> Any:
    """The value of a JSON text, as :func:`finite` leaves it.

    Raises:
        ValueError: it is no JSON, or nested deeper than Python follows.

    >>> parse('{"loss": NaN, "bytes": 1e999, "round": 1}')
    {'round': 1}
    """
    try:
        return finite(json.loads(document))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _holds(value: Any) -> bool:
    # NaN compares false, and whole numbers compare exactly however long they are.
    return not isinstance(value, int | float) or abs(value) <= sys.float_info.max
