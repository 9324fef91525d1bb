"""The peak of this process's resident memory over a piece of work, as Linux counts it."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc(5)


def peak_above(work: Callable[[], None]) -> int:
    """Bytes above what is there before ``work``."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed must not count as there
    _CLEAR.write_text(_RESET_PEAK)
    base = _status_bytes("VmRSS")
    work()
    return _status_bytes("VmHWM") - base


def _status_bytes(key: str) -> int:
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1]) * 1024
