"""What reads a sensor again and again while a board trains, behind a seam."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Ticker(Protocol):
    """Calls something at an interval between start and stop."""

    def start(self, tick: Callable[[], None], interval_s: float) -> None:
        """Begin to call ``tick``."""

    def stop(self) -> None:
        """Return when the last call has ended."""


class ThreadTicker:
    """A thread that sleeps between calls; it ends with the process."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, tick: Callable[[], None], interval_s: float) -> None:
        """See :class:`Ticker`."""
        self._ended.clear()

        def run() -> None:
            while not self._ended.wait(interval_s):
                tick()

        self._thread = threading.Thread(target=run, name="energy", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """See :class:`Ticker`."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


class FakeTicker:
    """Ticks when it is told to.

    >>> seen = []
    >>> ticker = FakeTicker()
    >>> ticker.start(lambda: seen.append("tick"), interval_s=1.0)
    >>> ticker.tick()
    >>> seen
    ['tick']
    """

    def __init__(self) -> None:
        self._tick: Callable[[], None] | None = None

    @property
    def runs(self) -> bool:
        """Whether it was started and not stopped."""
        return self._tick is not None

    def start(self, tick: Callable[[], None], interval_s: float) -> None:
        """See :class:`Ticker`."""
        del interval_s
        self._tick = tick

    def stop(self) -> None:
        """See :class:`Ticker`."""
        self._tick = None

    def tick(self) -> None:
        """One call, if it runs."""
        if self._tick is not None:
            self._tick()
