"""The highest moment of this process's memory, as the kernel counts it, behind a seam.

Linux remembers the largest resident set of a process (``VmHWM``) and sets it back to what is
resident now when 5 is written to ``/proc/self/clear_refs`` (proc(5)).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable
from typing import Protocol

from device_profiles.system_files import SystemFiles

_STATUS, _CLEAR = "/proc/self/status", "/proc/self/clear_refs"
_RESET_PEAK = "5"


class MemoryPeak(Protocol):
    """Measures one piece of work; it may be started again after a stop."""

    def start(self, brought_bytes: int = 0) -> None:
        """Begin to measure.

        Args:
            brought_bytes: of what is there already and belongs to the work.
        """

    def stop(self) -> int | None:
        """Bytes of the highest moment above what was there before; None where nothing tells it."""


class FakePeak:
    """A peak that is what it was told.

    >>> peak = FakePeak(7_000)
    >>> peak.start(500)
    >>> peak.stop(), peak.brought_bytes
    (7000, 500)
    """

    def __init__(self, peak_bytes: int | None) -> None:
        self._peak_bytes = peak_bytes
        self.brought_bytes: int | None = None

    def start(self, brought_bytes: int = 0) -> None:
        """See :class:`MemoryPeak`."""
        self.brought_bytes = brought_bytes

    def stop(self) -> int | None:
        """See :class:`MemoryPeak`."""
        return self._peak_bytes


def trimmed() -> None:
    """Give freed memory back to the system: the work would take it, and it would count as there."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # other C libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


class ProcessPeak:
    """Of this process on Linux; elsewhere nothing tells it.

    Where the peak cannot be set back, as in some containers, one that the work did not exceed may
    be from before, and is not known.
    """

    def __init__(self, system: SystemFiles, trim: Callable[[], None] = trimmed) -> None:
        self._system = system
        self._trim = trim
        self._is_reset = False
        self._base_bytes: int | None = None
        self._before_bytes: int | None = None

    def start(self, brought_bytes: int = 0) -> None:
        """See :class:`MemoryPeak`."""
        self._trim()
        self._is_reset = self._reset()
        resident_bytes = self._status_bytes("VmRSS")
        self._base_bytes = None if resident_bytes is None else resident_bytes - brought_bytes
        self._before_bytes = self._status_bytes("VmHWM")

    def stop(self) -> int | None:
        """See :class:`MemoryPeak`."""
        highest_bytes = self._status_bytes("VmHWM")
        if self._base_bytes is None or self._before_bytes is None or highest_bytes is None:
            return None
        if highest_bytes <= self._before_bytes and not self._is_reset:
            return None
        return max(0, highest_bytes - self._base_bytes)

    def _reset(self) -> bool:
        try:
            self._system.path(_CLEAR).write_text(_RESET_PEAK)
        except OSError:
            return False
        return True

    def _status_bytes(self, key: str) -> int | None:
        for line in (self._system.text(_STATUS) or "").splitlines():
            name, _, value = line.partition(":")
            number = value.removesuffix("kB").strip()
            if name == key and number.isdigit():
                return int(number) * 1024
        return None
