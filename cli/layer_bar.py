"""Which layers of a model train, as a bar of one character a layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fedfreeze.layout import Layout
from fedfreeze.plan import Plan, ReasonCode

TRAINS: Final = "#"

MARKS: Final[dict[ReasonCode, str]] = {
    "score": "s",
    "window": "w",
    "memory": "m",
    "compute": "t",
    "uplink": "u",
    "upload": "b",
    "flops": "f",
    "energy": "j",
    "fixed": ".",
    "phase": "p",
    "client": "c",
}

_MEANINGS: Final[dict[ReasonCode, str]] = {
    "score": "settled",
    "window": "still frozen",
    "memory": "memory",
    "compute": "time",
    "uplink": "uplink",
    "upload": "bytes of a round",
    "flops": "operations of a round",
    "energy": "joules of a round",
    "fixed": "never trains here",
    "phase": "not in this phase",
    "client": "the board's own choice",
}


def bar(plan: Plan, layout: Layout) -> str:
    """One character a layer, from the input on."""
    return "".join(
        MARKS[plan.frozen[name].code] if name in plan.frozen else TRAINS for name in layout.names
    )


def legend(bars: Iterable[str]) -> str:
    """What the characters of these bars mean.

    >>> legend(["mm##", "####"])
    '# trains; frozen for: m memory'
    """
    seen = set().union(*bars)
    reasons = [f"{mark} {_MEANINGS[code]}" for code, mark in MARKS.items() if mark in seen]
    return f"{TRAINS} trains" + (f"; frozen for: {', '.join(reasons)}" if reasons else "")
