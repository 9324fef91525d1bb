"""Ctrl-C and its relatives: the first asks for an orderly end, the second does not wait for it.

A signal that the command was started with as ignored, as ``nohup`` and background jobs do, stays
ignored.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

EXIT_CODE = 130

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block on the first signal, and exit at once on the second.

    An exit at once leaves processes behind for a moment: their guardian ends them.
    """
    heeded = _heeded()

    def first(_signum: int, _frame: FrameType | None) -> None:
        for number in heeded:
            signal.signal(number, _exit)
        raise KeyboardInterrupt

    with _handling(heeded, first):
        yield


@contextlib.contextmanager
def exit_at_once() -> Iterator[None]:
    """Exit on the first signal, for blocks that import modules and have started nothing.

    An exception would pass through whatever is being imported, and be printed or swallowed there.
    """
    with _handling(_heeded(), _exit):
        yield


def _exit(_signum: int, _frame: FrameType | None) -> None:
    os._exit(EXIT_CODE)


def _heeded() -> list[signal.Signals]:
    left_alone = (signal.SIG_IGN, None)  # None: set by a library, which Python cannot put back
    return [number for number in _SIGNALS if signal.getsignal(number) not in left_alone]


@contextlib.contextmanager
def _handling(
    numbers: list[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
