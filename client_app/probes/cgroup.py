"""The control groups that hold this process, in versions 1 and 2, inside a container or not.

Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. A limit anywhere between a
process's own group and the topmost one that can be seen binds it.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from device_profiles.system_files import SystemFiles

# Version 1 writes the largest whole number of pages where nothing is limited.
_UNLIMITED = 2**62

# By version: limits, what is used, and what of it can go, below "memory.". Above "high" nothing is
# killed, but a process waits until as much was taken back: training there would not end.
_FILES = {
    1: (("limit_in_bytes",), "usage_in_bytes", "total_inactive_file"),
    2: (("max", "high"), "current", "inactive_file"),
}


class Group(NamedTuple):
    """A folder of the control group file system, and of which version it is."""

    version: int
    folder: str


def groups(system: SystemFiles, controller: str) -> list[Group]:
    """This process's group of a controller and every one above it that can be seen."""
    own = _own_paths(system, controller)
    found = []
    for line in (system.text("/proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        place, kind = before.split(), after.split()
        if len(place) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            version = 2
        elif kind[0] == "cgroup" and controller in kind[2].split(","):
            version = 1
        else:
            continue
        if version in own:
            mount = PurePosixPath(place[4])
            folder = mount / _inside(own[version], place[3])
            above = [folder, *folder.parents]
            found += [Group(version, str(f)) for f in above if f.is_relative_to(mount)]
    return found


def free_memory_bytes(system: SystemFiles) -> int | None:
    """What the tightest limit leaves; None where nothing is limited.

    Pages of files that were not used lately count as usage, and go when they are needed.
    """
    left = []
    for version, folder in groups(system, "memory"):
        tops, usage, idle = _FILES[version]
        limits = [system.whole(f"{folder}/memory.{top}") for top in tops]  # "max" is no number
        known = [limit for limit in limits if limit is not None and limit < _UNLIMITED]
        used_bytes = system.whole(f"{folder}/memory.{usage}")
        if not known or used_bytes is None:
            continue
        idle_bytes = _statistic(system.text(f"{folder}/memory.stat"), idle)
        left.append(max(0, min(known) - max(0, used_bytes - idle_bytes)))
    return min(left, default=None)


def processor_quota(system: SystemFiles) -> float | None:
    """How many processors' time this process may take; None where nothing is limited."""
    quotas = []
    for version, folder in groups(system, "cpu"):
        if version == 2:
            quota, _, period = (system.text(f"{folder}/cpu.max") or "").partition(" ")
        else:
            quota = system.text(f"{folder}/cpu.cfs_quota_us") or ""
            period = system.text(f"{folder}/cpu.cfs_period_us") or ""
        # "max" in version 2 and -1 in version 1 limit nothing.
        if quota.isdecimal() and period.isdecimal() and int(period) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def can_limit_memory(system: SystemFiles) -> bool | None:
    """Whether the kernel counts memory by group at all; None where it does not say."""
    for line in (system.text("/proc/cgroups") or "").splitlines():
        name, *numbers = line.split()
        if name == "memory" and len(numbers) == 3:
            return numbers[2] == "1"
    controllers = system.text("/sys/fs/cgroup/cgroup.controllers")
    return None if controllers is None else "memory" in controllers.split()


def _own_paths(system: SystemFiles, controller: str) -> dict[int, str]:
    """The path of this process's group in each version that it is in."""
    paths = {}
    for line in (system.text("/proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and not parts[1]:
            paths[2] = parts[2]
        elif len(parts) == 3 and controller in parts[1].split(","):
            paths[1] = parts[2]
    return paths


def _inside(path: str, root: str) -> PurePosixPath:
    """Where a group stands below a mount of ``root``.

    In a container the mount may begin at the container's own group while the path is the host's,
    or the other way round; then the mount itself is the container's.
    """
    here, top = PurePosixPath(path), PurePosixPath(root)
    if ".." in here.parts or not here.is_relative_to(top):
        return PurePosixPath()
    return here.relative_to(top)


def _statistic(text: str | None, name: str) -> int:
    for line in (text or "").splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdecimal():
            return int(value)
    return 0
