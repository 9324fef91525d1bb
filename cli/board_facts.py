"""What ``fedfreeze doctor`` knows of a board before it judges: every sensor read once."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cli.torch_probe import TorchReport, probe_torch
from client_app.link_log import Link, link_of
from client_app.probes import cgroup
from client_app.probes.battery import BatteryCharge, battery_now
from client_app.probes.heat import Heat, heat_now
from client_app.probes.memory import Memory, memory_now
from client_app.probes.processor import Processor, board_model, processor_now
from device_profiles.board import Board
from device_profiles.energy import rapl
from device_profiles.energy.choice import power_sensor
from device_profiles.system_files import SystemFiles

_CLOCK_FILES = "/run/systemd/timesync"
_SUPERNODE = "flower-superno"  # the kernel keeps 15 letters of a program's name


@dataclass(frozen=True)
class Host:
    """The machine under the doctor's hands; tests build one of fakes.

    Attributes:
        system: its files.
        architecture: as ``uname -m`` prints it.
        env: environment variables.
        now_s: seconds since 1970 by its clock.
        made_s: when this release was written, by the same count.
        free_disk_bytes: of the file system that holds a folder; None where nobody can say.
        can_write: whether this user may write into a folder, or make it.
        torch: tries torch on "auto", "cpu" or "cuda".
        user: number of the user who runs this; None where users have none.
    """

    system: SystemFiles
    architecture: str
    env: Mapping[str, str]
    now_s: float
    made_s: float
    free_disk_bytes: Callable[[Path], int | None]
    can_write: Callable[[Path], bool]
    torch: Callable[[str], TorchReport]
    user: int | None


@dataclass(frozen=True)
class BoardFacts:
    """Everything that was found; None is what the board does not say."""

    model: str | None
    architecture: str
    processor: Processor
    scaling_driver: str | None
    memory: Memory
    can_limit_memory: bool | None
    supernode_runs: bool
    heat: Heat
    battery: BatteryCharge | None
    torch: TorchReport | None
    link: Link
    state_dir: Path
    free_disk_bytes: int | None
    can_write: bool
    clock_is_set: bool | None
    clock_is_behind: bool
    energy_sensor: str | None
    rapl_is_denied: bool
    profile: Board | None
    device: str
    user: int | None
    env: Mapping[str, str] = field(default_factory=dict)


def this_host() -> Host:
    """The machine that this process runs on."""
    return Host(
        system=SystemFiles(),
        architecture=platform.machine(),
        env=os.environ,
        now_s=time.time(),
        made_s=Path(__file__).stat().st_mtime,
        free_disk_bytes=_free_disk_bytes,
        can_write=_can_write,
        torch=probe_torch,
        user=os.getuid() if hasattr(os, "getuid") else None,
    )


def facts_of(
    host: Host, *, state_dir: Path, profile: Board | None, device: str, with_torch: bool
) -> BoardFacts:
    """Read every sensor of a host.

    Args:
        host: the machine.
        state_dir: where the SuperNode keeps its state.
        profile: the board that it is said to be.
        device: ``local.device`` of the strategy that it is to train by.
        with_torch: whether to try torch, too, which takes some seconds.
    """
    system = host.system
    sensor = power_sensor(system)
    counters = bool(rapl.packages(system))
    denied = rapl.is_denied(system)
    return BoardFacts(
        model=board_model(system),
        architecture=host.architecture,
        processor=processor_now(system),
        scaling_driver=system.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
        memory=memory_now(system),
        can_limit_memory=cgroup.can_limit_memory(system),
        supernode_runs=_supernode_runs(system),
        heat=heat_now(system),
        battery=battery_now(system),
        torch=host.torch(device) if with_torch else None,
        link=_link(state_dir),
        state_dir=state_dir,
        free_disk_bytes=host.free_disk_bytes(state_dir),
        can_write=host.can_write(state_dir),
        clock_is_set=_clock_is_set(system),
        clock_is_behind=host.now_s < host.made_s,
        energy_sensor=sensor.source if sensor else "rapl" if counters and not denied else None,
        rapl_is_denied=sensor is None and denied,
        profile=profile,
        device=device,
        user=host.user,
        env=host.env,
    )


def _link(state_dir: Path) -> Link:
    """What the node kept of its messages; nothing where several share the folder."""
    try:
        folders = list((state_dir / "measured").iterdir())
    except (OSError, ValueError):  # nothing was measured, or only the node's own user may look
        return Link()
    return link_of(folders[0]) if len(folders) == 1 else Link()


def _clock_is_set(system: SystemFiles) -> bool | None:
    """Whether systemd-timesyncd has set the clock since the start; None where it does not run."""
    if not system.found(_CLOCK_FILES):
        return None
    return bool(system.found(f"{_CLOCK_FILES}/synchronized"))


def _supernode_runs(system: SystemFiles) -> bool:
    names = (system.text(name) or "" for name in system.found("/proc/[0-9]*/comm"))
    return any(name.startswith(_SUPERNODE) for name in names)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that this user can see."""
    return next((f for f in (folder, *folder.parents) if _is_there(f)), Path("/"))


def _is_there(folder: Path) -> bool:
    """Unlike ``Path.exists``, no error where a folder above it may not be looked into."""
    try:
        folder.stat()
    except (OSError, ValueError):
        return False
    return True


def _can_write(folder: Path) -> bool:
    there = _existing(folder)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _free_disk_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(_existing(folder)).free
    except OSError:
        return None
