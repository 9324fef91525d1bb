"""The peak of this process's resident memory over a piece of work, as Linux counts it."""

from __future__ import annotations

from collections.abc import Callable

from client_app.probes.peak import ProcessPeak
from device_profiles.system_files import SystemFiles


def peak_above(work: Callable[[], object]) -> int:
    """Bytes above what is there before ``work``.

    Raises:
        RuntimeError: this system does not tell.
    """
    peak = ProcessPeak(SystemFiles())
    peak.start()
    work()
    peak_bytes = peak.stop()
    if peak_bytes is None:
        raise RuntimeError(
            "expected a peak in /proc/self/status that /proc/self/clear_refs sets back, got none; "
            "run this on Linux, where /proc can be written"
        )
    return peak_bytes
