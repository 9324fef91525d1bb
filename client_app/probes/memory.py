"""Memory that a program could get now."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from client_app.probes import cgroup
from device_profiles.system_files import SystemFiles


@dataclass(frozen=True)
class Memory:
    """Bytes of memory, each None where nothing says it.

    Attributes:
        total_bytes: what the kernel manages; a little less than the board holds.
        available_bytes: what the system could give to a program without swapping.
        swap_bytes: swap space in all; 0 where there is none.
        group_free_bytes: what the tightest control group leaves; None where none has a limit.
    """

    total_bytes: int | None
    available_bytes: int | None
    swap_bytes: int | None
    group_free_bytes: int | None

    @property
    def free_bytes(self) -> int | None:
        """What a program can get: the system's answer or that of a control group, the smaller."""
        known = (self.available_bytes, self.group_free_bytes)
        return min((value for value in known if value is not None), default=None)


def memory_now(system: SystemFiles) -> Memory:
    """What ``/proc/meminfo`` and the control groups say."""
    lines = (system.text("/proc/meminfo") or "").splitlines()
    known = dict(line.split(":", 1) for line in lines if ":" in line)
    return Memory(
        total_bytes=_bytes(known.get("MemTotal")),
        available_bytes=_bytes(known.get("MemAvailable")),
        swap_bytes=_bytes(known.get("SwapTotal")),
        group_free_bytes=cgroup.free_memory_bytes(system),
    )


def free_memory_bytes(system: SystemFiles | None = None) -> float:
    """What a program on this machine can get now, at least 1.

    Where the kernel has no ``/proc/meminfo``, as on a Mac, psutil is asked.
    """
    free = memory_now(SystemFiles() if system is None else system).free_bytes
    if free is None:
        free = int(psutil.virtual_memory().available)
    return float(max(1, free))


def _bytes(value: str | None) -> int | None:
    number = (value or "").removesuffix("kB").strip()
    return 1024 * int(number) if number.isdecimal() else None
