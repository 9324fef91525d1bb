"""Real time behind a seam: what waits or measures takes a clock, and tests give it a fake one."""

from __future__ import annotations

import time
from typing import Protocol


class WallClock(Protocol):
    """Monotonic seconds, and waiting."""

    def now(self) -> float:
        """Seconds since some fixed instant; never goes back."""

    def sleep(self, seconds: float) -> None:
        """Return after ``seconds``."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """See :class:`WallClock`."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See :class:`WallClock`."""
        time.sleep(seconds)


class FakeClock:
    """Time that passes only when somebody sleeps.

    >>> clock = FakeClock()
    >>> clock.sleep(2.5)
    >>> clock.now()
    2.5
    """

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        """See :class:`WallClock`."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """See :class:`WallClock`."""
        self._now += seconds
