"""How a board of a fleet takes part: when it is there, and what its battery holds.

Everything here is a pure function of its arguments and whole-number arithmetic on a digest, so
that any process of any platform sees the same boards come and go.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from fedfreeze.seeded import DRAWS, draw
from fedfreeze.settings import Joules, Settings, Share
from fedfreeze.toml_faults import shown

Window = tuple[float, float]
Trace = tuple[Window, ...]

# A trace travels as text with the fleet; so many windows are months of coming and going.
MAX_WINDOWS = 10_000

_LATEST_S = sys.float_info.max


class Battery(Settings):
    """``battery``: what a board runs on where nothing charges it.

    Attributes:
        capacity: when full, in joules.
        start: share that is there when the run begins.
    """

    capacity: Annotated[Joules, Field(gt=0)]
    start: Share = 1.0

    @property
    def start_j(self) -> float:
        """Joules when the run begins."""
        return self.capacity * self.start


@dataclass(frozen=True)
class Presence:
    """When one board takes part.

    Attributes:
        availability: the probability of being there in a round, drawn anew for each; or windows
            ``(from_s, to_s)`` of simulated seconds since the run began, in order, ``to_s`` not
            included.
        battery: None where the board is fed from the mains.
    """

    availability: float | Trace = 1.0
    battery: Battery | None = None


ALWAYS = Presence()


def available(
    presence: Presence,
    *,
    seed: int,
    device_id: str,
    round_number: int,
    now_s: float,
    look: int = 0,
) -> bool:
    """Whether the board is there when a round begins.

    Args:
        presence: how the board takes part.
        seed: of the run; only a probability draws.
        device_id: of the board.
        round_number: of the round; a repeated round draws the same.
        now_s: simulated seconds since the run began; only a trace reads the time.
        look: how often nobody was there when the round was to begin; each look draws anew.

    >>> office_hours = Presence(availability=((0.0, 3600.0),))
    >>> asked = {"seed": 0, "device_id": "cam-07", "round_number": 1}
    >>> [available(office_hours, **asked, now_s=now_s) for now_s in (3599.0, 3600.0)]
    [True, False]
    """
    if isinstance(presence.availability, tuple):
        return _window_at(presence.availability, now_s) is not None
    looked = (look,) if look else ()
    drawn = draw("availability", seed, device_id, round_number, *looked)
    return drawn < int(presence.availability * DRAWS)


def opens_s(presence: Presence, now_s: float) -> float:
    """When the next window of a trace opens after ``now_s``; infinite where none does.

    >>> opens_s(Presence(((10.0, 20.0), (30.0, 40.0))), 20.0)
    30.0
    """
    trace = presence.availability
    if not isinstance(trace, tuple):
        return math.inf
    place = bisect_right(trace, (now_s, math.inf))
    return trace[place][0] if place < len(trace) else math.inf


def leaves_s(presence: Presence, now_s: float) -> float:
    """Until when a board that is there at ``now_s`` stays; infinite where no window closes.

    Windows that touch are one. A board that its draw has brought stays for the round.

    >>> leaves_s(Presence(((10.0, 20.0), (20.0, 30.0))), 15.0)
    30.0
    """
    trace = presence.availability
    if not isinstance(trace, tuple):
        return math.inf
    place = _window_at(trace, now_s)
    if place is None:
        return now_s
    while place + 1 < len(trace) and trace[place + 1][0] == trace[place][1]:
        place += 1
    return trace[place][1]


def _window_at(trace: Trace, now_s: float) -> int | None:
    """The place of the window that is open; windows stand in order."""
    place = bisect_right(trace, (now_s, math.inf)) - 1
    return place if place >= 0 and now_s < trace[place][1] else None


def checked(value: Any) -> float | Trace | str:
    """An availability as people write it: a probability, windows, or a path to a file of windows.

    Raises:
        ValueError: it is none of the three.
    """
    if isinstance(value, str) and value.endswith((".csv", ".json")):
        return value
    if isinstance(value, list | tuple):
        return windows(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(  # noqa: TRY004  # pydantic reports this one
            "expected a probability, an array of [from, to] in seconds, or the path of a .csv or "
            f".json file, got {shown(value)}"
        )
    if not 0 <= value <= 1:
        raise ValueError(f"expected a probability from 0 to 1, got {shown(value)}")
    return float(value)


def windows(rows: list[Any] | tuple[Any, ...]) -> Trace:
    """Rows of ``[from_s, to_s]`` as a trace.

    Raises:
        ValueError: a row is no window, two of them overlap, or there are none or too many.
    """
    if not 1 <= len(rows) <= MAX_WINDOWS:
        raise ValueError(f"expected 1 to {MAX_WINDOWS} windows [from, to], got {len(rows)}")
    trace: list[Window] = []
    for number, row in enumerate(rows, 1):
        window = _window(row)
        if window is None:
            raise ValueError(
                f"window {number}: expected [from, to] in seconds, 0 <= from < to, got "
                f"{list(row) if isinstance(row, list | tuple) else shown(row)}"
            )
        if trace and window[0] < trace[-1][1]:
            raise ValueError(
                f"window {number}: expected to begin when window {number - 1} has ended, at "
                f"{trace[-1][1]:g} s or later, got {window[0]:g} s"
            )
        trace.append(window)
    return tuple(trace)


def _window(row: Any) -> Window | None:
    if not isinstance(row, list | tuple) or len(row) != 2:
        return None
    if any(isinstance(end, bool) or not isinstance(end, int | float) for end in row):
        return None
    begin, end = row
    # Whole numbers may be larger than any float.
    return (float(begin), float(end)) if 0 <= begin < end <= _LATEST_S else None
