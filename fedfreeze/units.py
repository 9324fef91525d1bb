"""Quantities as people write them: ``"4 MB"``, ``"250 kbit/s"``, ``"60 s"``, ``"3.2 GFLOP/s"``.

The tables are closed: a unit that is not listed is an error, never a guess. Decimal prefixes are
powers of 1000, binary ones (``KiB``) powers of 1024; ``bit`` is an eighth of a byte.
"""

from __future__ import annotations

import math
import re
from enum import Enum


class Dimension(Enum):
    """What a quantity measures; the value names its base unit."""

    BYTES = "B"
    BYTES_PER_S = "B/s"
    SECONDS = "s"
    FLOPS_PER_S = "FLOP/s"
    WATTS = "W"
    JOULES = "J"
    HERTZ = "Hz"


_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}

UNITS: dict[Dimension, dict[str, float]] = {
    Dimension.BYTES: {f"{p}B": f for p, f in {**_DECIMAL, **_BINARY}.items()},
    Dimension.BYTES_PER_S: {
        **{f"{p}B/s": f for p, f in {**_DECIMAL, **_BINARY}.items()},
        **{f"{p}bit/s": f / 8 for p, f in _DECIMAL.items()},
    },
    Dimension.SECONDS: {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    Dimension.FLOPS_PER_S: {f"{p}FLOP/s": f for p, f in _DECIMAL.items()},
    Dimension.WATTS: {"mW": 1e-3, "W": 1.0},
    Dimension.JOULES: {
        **{f"{p}J": f for p, f in _DECIMAL.items()},
        **{f"{p}Wh": 3600 * f for p, f in {"m": 1e-3, "": 1.0, "k": 1e3}.items()},
    },
    Dimension.HERTZ: {f"{p}Hz": f for p, f in _DECIMAL.items()},
}

EXAMPLES: dict[Dimension, str] = {
    Dimension.BYTES: "2 MB",
    Dimension.BYTES_PER_S: "250 kbit/s",
    Dimension.SECONDS: "60 s",
    Dimension.FLOPS_PER_S: "3 GFLOP/s",
    Dimension.WATTS: "5 W",
    Dimension.JOULES: "10 Wh",
    Dimension.HERTZ: "1.5 GHz",
}

_WRITTEN = re.compile(
    r"\s*([+-]?[0-9](?:_?[0-9])*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]+)\s*"
)


def parse(text: str, dimension: Dimension) -> float:
    """The quantity in its base unit.

    Raises:
        ValueError: not a number and a known unit, not finite, or below 0.

    >>> parse("4 MiB", Dimension.BYTES)
    4194304.0
    >>> parse("250 kbit/s", Dimension.BYTES_PER_S)
    31250.0
    """
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise ValueError(f'expected a quantity such as "{EXAMPLES[dimension]}", got "{text}"')
    number, unit = written.groups()
    factor = UNITS[dimension].get(unit)
    if factor is None:
        known = ", ".join(UNITS[dimension])
        raise ValueError(f'"{text}": unknown unit "{unit}"; use one of {known}')
    value = float(number) * factor
    if not math.isfinite(value) or value < 0:
        raise ValueError(f'expected a quantity of 0 or more, got "{text}"')
    return value


def written(value: float, dimension: Dimension) -> str:
    """The quantity for a person, three digits and a decimal prefix.

    >>> written(6_270, Dimension.BYTES)
    '6.27 kB'
    >>> written(75.0, Dimension.SECONDS)
    '75 s'
    """
    if dimension is Dimension.SECONDS:
        return f"{value:.3g} s" if value < 999.5 else f"{value / 3600:.3g} h"
    rounded = float(f"{value:.3g}")  # 999,999 bytes are 1 MB, not 1e+03 kB
    for prefix in ("T", "G", "M", "k"):
        if abs(rounded) >= _DECIMAL[prefix]:
            return f"{rounded / _DECIMAL[prefix]:.3g} {prefix}{dimension.value}"
    return f"{value:.3g} {dimension.value}"


def exact(value: float, dimension: Dimension) -> str:
    """The quantity in its base unit with every digit, for files: :func:`parse` gives it back.

    >>> exact(600.0, Dimension.SECONDS)
    '600 s'
    """
    return f"{repr(float(value)).removesuffix('.0')} {dimension.value}"
