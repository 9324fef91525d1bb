"""The clock of a simulated fleet: it moves by modelled seconds, never by waiting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fedfreeze.errors import ProtocolError


@dataclass(frozen=True)
class RoundTimes:
    """How a round went by the clock.

    Attributes:
        round_s: its length.
        late: devices whose update came after the deadline, sorted.
        lost: devices that left before their update arrived, sorted.
    """

    round_s: float
    late: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def round_times(
    totals_s: Mapping[str, float], leave_s: Mapping[str, float], deadline_s: float
) -> RoundTimes:
    """How long a round lasts, which devices miss it, and which leave it.

    The server does not know that a device has left, so it waits for it until the deadline. An
    update that arrives in the moment in which its device leaves has arrived.

    Args:
        totals_s: modelled seconds of every device that was asked, by device id.
        leave_s: seconds after the beginning of the round at which a device leaves, by device id;
            who is not named stays.
        deadline_s: what the server waits at most.

    Raises:
        ProtocolError: see :func:`round_seconds`.

    >>> round_times({"a": 9.0, "b": 4.0}, {"a": 5.0, "b": 5.0}, deadline_s=60.0)
    RoundTimes(round_s=60.0, late=(), lost=('a',))
    """
    lost = tuple(
        sorted(
            name
            for name, seconds in totals_s.items()
            if leave_s.get(name, math.inf) < min(seconds, deadline_s)
        )
    )
    stayed = {name: seconds for name, seconds in totals_s.items() if name not in lost}
    seconds, late = round_seconds(stayed, deadline_s)
    return RoundTimes(deadline_s if lost else seconds, late, lost)


def round_seconds(
    totals_s: Mapping[str, float], deadline_s: float
) -> tuple[float, tuple[str, ...]]:
    """How long a round lasts, and which devices miss it.

    Args:
        totals_s: modelled seconds of every device that was asked, by device id.
        deadline_s: what the server waits at most; a device that needs exactly this is in time.

    Returns:
        The seconds of the round: those of its slowest device, or the deadline if a device is late
        (0 if none was asked); and the late devices, sorted.

    Raises:
        ProtocolError: a time is negative or not a number.

    >>> round_seconds({"b": 4.0, "a": 9.0}, deadline_s=60.0)
    (9.0, ())
    >>> round_seconds({"b": 4.0, "a": 90.0}, deadline_s=60.0)
    (60.0, ('a',))
    """
    for device_id, seconds in totals_s.items():
        if not seconds >= 0:
            raise ProtocolError(
                f"device {device_id!r}: expected modelled seconds of 0 or more, got {seconds}"
            )
    late = tuple(sorted(name for name, seconds in totals_s.items() if seconds > deadline_s))
    return (deadline_s if late else max(totals_s.values(), default=0.0)), late


class VirtualClock:
    """Simulated seconds since the run began.

    >>> clock = VirtualClock()
    >>> clock.advance(1.5)
    1.5
    >>> clock.advance(2.0)
    3.5
    """

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    @property
    def now_s(self) -> float:
        """Simulated seconds so far."""
        return self._now_s

    def advance(self, seconds: float) -> float:
        """Move forward and return the new time.

        Raises:
            ProtocolError: ``seconds`` is negative or not finite.
        """
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ProtocolError(f"a clock moves by 0 or more finite seconds, got {seconds}")
        self._now_s += seconds
        return self._now_s

    def move_to(self, time_s: float) -> float:
        """Move forward to a time, to the last bit, and return it.

        Raises:
            ProtocolError: it has passed, or is not finite.
        """
        if not (math.isfinite(time_s) and time_s >= self._now_s):
            raise ProtocolError(
                f"expected a finite time from {self._now_s} s on, got {time_s} s; a clock never "
                "runs backwards"
            )
        self._now_s = time_s
        return self._now_s
