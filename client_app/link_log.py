"""The last messages that reached a board, and how fast its downlink was.

A ClientApp is not there while Flower's SuperNode transfers a message. What it knows is when the
server made the message (by the server's clock), when it was handed over here (by the board's), and
how many bytes it has. The time between is

    waited = difference of the clocks + polling + process start + bytes / rate,

of which all but the last term are in small messages as well, as long as nobody sets the board's
clock: only messages by the same setting of it are compared. So the rate follows from a large
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
# Setting a clock by less moves a rate by a tenth at most.
_SAME_CLOCK_S = 1.0


@dataclass(frozen=True)
class Arrival:
    """One message that reached the board.

    Attributes:
        bytes: of its content.
        waited_s: from its making on the server until it was handed over, by two clocks; negative
            where the board's clock is behind.
        clock_s: what the board's clock was ahead of its monotonic one: it changes when the clock is
            set, or the board is started anew.
    """

    bytes: int
    waited_s: float
    clock_s: float = 0.0


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
    longer = (_longer(large, arrivals) for large in arrivals)
    return max((more.bytes / more.waited_s for more in longer if more is not None), default=None)


def transfer_s(arrival: Arrival, others: Sequence[Arrival], most_s: float) -> float | None:
    """Seconds that the bytes of a message took, where a small one shows what else it waited for.

    None as well where that is longer than ``most_s``, which no message lives: then somebody has set
    the board's clock between the two.

    Of 1 MB that waited 25 s beside 10 kB that waited 5 s, 990 kB took 20 s:

    >>> round(transfer_s(Arrival(1_000_000, 25.0), [Arrival(10_000, 5.0)], 60.0), 1)
    20.2
    """
    more = _longer(arrival, others)
    took_s = math.inf if more is None else arrival.bytes * more.waited_s / more.bytes
    return took_s if took_s <= most_s else None


def _longer(large: Arrival, others: Sequence[Arrival]) -> Arrival | None:
    """What a message has more, and how much longer it waited, than the quickest small one."""
    small = [other for other in others if _are_comparable(other, large)]
    if not small:
        return None
    quickest = min(small, key=lambda a: a.waited_s)
    took_s = large.waited_s - quickest.waited_s
    return Arrival(large.bytes - quickest.bytes, took_s) if took_s >= _LEAST_S else None


def _are_comparable(small: Arrival, large: Arrival) -> bool:
    same_clock = abs(small.clock_s - large.clock_s) <= _SAME_CLOCK_S
    return small.bytes <= _SMALL * large.bytes and same_clock


def link_of(folder: Path) -> Link:
    """What the messages say that were remembered in this folder."""
    return Link(downlink_bytes_per_s=downlink_bytes_per_s(_read(folder / FILE)))


def transfer_in(folder: Path, arrival: Arrival, most_s: float) -> float | None:
    """As :func:`transfer_s`, by the messages that were remembered in this folder."""
    return transfer_s(arrival, _read(folder / FILE), most_s)


def remember(folder: Path, arrival: Arrival) -> None:
    """Add a message to those of this folder, if it can be written."""
    kept = [*_read(folder / FILE), arrival][-_KEPT:]
    lines = [json.dumps([a.bytes, a.waited_s, a.clock_s]) for a in kept]
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
            size, waited_s, clock_s = numbers = json.loads(line)
            if all(map(_is_number, numbers)) and size > 0:
                found.append(Arrival(int(size), float(waited_s), float(clock_s)))
    return found


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and abs(value) < 1e18 and math.isfinite(value)
