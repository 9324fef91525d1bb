"""The last messages that reached a board, and how fast its downlink was.

A ClientApp is not there while Flower's SuperNode transfers a message. What it knows is when the
server made the message (by the server's clock), when it was handed over here (by the board's), and
how many bytes it has. The time between is

    waited = difference of the clocks + polling + process start + bytes / rate,

of which all but the last term are in small messages as well. So the rate follows from a large
message against a small one, and only where the transfer takes so long that polling, up to some
seconds, does not matter. A message that waited for another reason makes the rate too low, never
too high; the fastest of the last messages counts. How fast an upload was is not known here: the
process has ended when it begins.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = "messages.jsonl"

# So many messages are kept: a board that moves to another network forgets the old one.
_KEPT = 32
# A small message is at most so much of a large one, and a transfer takes at least so long: polling
# and the start of a process vary by about 3 s (flwr 1.42).
_SMALL = 0.1
_LEAST_S = 10.0


@dataclass(frozen=True)
class Arrival:
    """One message that reached the board.

    Attributes:
        bytes: of its content.
        waited_s: from its making on the server until it was handed over, by two clocks; negative
            where the board's clock is behind.
    """

    bytes: int
    waited_s: float


@dataclass(frozen=True)
class Link:
    """Speeds in bytes/s of the last transfers; None where nothing tells them."""

    uplink_bytes_per_s: float | None = None
    downlink_bytes_per_s: float | None = None


def downlink_bytes_per_s(arrivals: Sequence[Arrival]) -> float | None:
    """The fastest downlink that a large message shows against the quickest small one.

    Of 1 MB that waited 25 s and 10 kB that waited 5 s, 990 kB took 20 s:

    >>> downlink_bytes_per_s([Arrival(1_000_000, 25.0), Arrival(10_000, 5.0)])
    49500.0
    """
    rates = []
    for large in arrivals:
        small = [a for a in arrivals if a.bytes <= _SMALL * large.bytes]
        if small:
            quickest = min(small, key=lambda a: a.waited_s)
            took_s = large.waited_s - quickest.waited_s
            if took_s >= _LEAST_S:
                rates.append((large.bytes - quickest.bytes) / took_s)
    return max(rates, default=None)


def link_of(folder: Path) -> Link:
    """What the messages say that were remembered in this folder."""
    return Link(downlink_bytes_per_s=downlink_bytes_per_s(_read(folder / FILE)))


def remember(folder: Path, arrival: Arrival) -> None:
    """Add a message to those of this folder, if it can be written."""
    kept = [*_read(folder / FILE), arrival][-_KEPT:]
    lines = [json.dumps([a.bytes, a.waited_s]) for a in kept]
    with contextlib.suppress(OSError):  # what nobody can keep is not known later, and no more
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{FILE}.{os.getpid()}"
        temporary.write_text("\n".join(lines), encoding="utf-8")
        temporary.replace(folder / FILE)


def _read(path: Path) -> list[Arrival]:
    """The arrivals in a file; lines that are none are passed over."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            size, waited_s = json.loads(line)
            if _is_number(size) and _is_number(waited_s) and size > 0:
                found.append(Arrival(int(size), float(waited_s)))
    return found


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and abs(value) < 1e18 and math.isfinite(value)
