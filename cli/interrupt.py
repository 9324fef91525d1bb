"""Ctrl-C and its relatives: the first asks for an orderly end, the second does not wait for it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

EXIT_CODE = 130

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block on the first signal, and exit at once on the second.

    An exit at once leaves processes behind for a moment: their guardian ends them.
    """

    def first(_signum: int, _frame: FrameType | None) -> None:
        for number in _SIGNALS:
            signal.signal(number, second)
        raise KeyboardInterrupt

    def second(_signum: int, _frame: FrameType | None) -> None:
        os._exit(EXIT_CODE)

    before = {number: signal.signal(number, first) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
