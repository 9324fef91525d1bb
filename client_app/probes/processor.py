"""The processor: what it is, and what it is allowed to do."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from client_app.probes import cgroup
from device_profiles.system_files import SystemFiles

# `CPU implementer` and `CPU part` of Arm cores (the MIDR register), as the kernel names them in
# arch/arm64/include/asm/cputype.h.
_ARM_CORES = {
    ("0x41", "0xd03"): "Cortex-A53",
    ("0x41", "0xd04"): "Cortex-A35",
    ("0x41", "0xd05"): "Cortex-A55",
    ("0x41", "0xd07"): "Cortex-A57",
    ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd09"): "Cortex-A73",
    ("0x41", "0xd0a"): "Cortex-A75",
    ("0x41", "0xd0b"): "Cortex-A76",
    ("0x41", "0xd0d"): "Cortex-A77",
    ("0x41", "0xd41"): "Cortex-A78",
    ("0x41", "0xd42"): "Cortex-A78AE",
    ("0x41", "0xd46"): "Cortex-A510",
    ("0x41", "0xd4d"): "Cortex-A715",
    ("0x41", "0xd4e"): "Cortex-X3",
    ("0x4e", "0x003"): "Denver 2",
    ("0x4e", "0x004"): "Carmel",
}


@dataclass(frozen=True)
class Processor:
    """What the kernel says of the processor; None where it says nothing.

    Attributes:
        model: "AMD EPYC", or the kinds of Arm cores: "Cortex-A53".
        cores: how many are on.
        quota: how many processors' time the control groups allow.
        governors: by which the clock is set, sorted; one name unless cores differ.
        most_hz: the highest clock that the governor may choose.
        allowed: on how many cores this process may run, as by a container's cpuset.
    """

    model: str | None
    cores: int | None
    quota: float | None
    governors: tuple[str, ...]
    most_hz: int | None
    allowed: int | None = None


def processor_now(system: SystemFiles) -> Processor:
    """Read ``/proc/cpuinfo``, the control groups and cpufreq."""
    lines = (system.text("/proc/cpuinfo") or "").splitlines()
    pairs = [(key.strip(), value.strip()) for key, _, value in (s.partition(":") for s in lines)]
    cores = sum(key == "processor" and value.isdecimal() for key, value in pairs)
    cpufreq = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq"
    governors = {system.text(name) for name in system.found(f"{cpufreq}/scaling_governor")}
    clocks = [system.whole(name) for name in system.found(f"{cpufreq}/scaling_max_freq")]
    return Processor(
        model=_model(pairs),
        cores=cores or None,
        quota=cgroup.processor_quota(system),
        governors=tuple(sorted(name for name in governors if name is not None)),
        most_hz=max((1000 * khz for khz in clocks if khz is not None), default=None),
        allowed=_allowed(system),
    )


def board_model(system: SystemFiles) -> str | None:
    """What the board calls itself: the device tree's model, else what its firmware says.

    >>> from pathlib import Path
    >>> board_model(SystemFiles(Path("/nowhere"))) is None
    True
    """
    for name in ("/proc/device-tree/model", "/sys/firmware/devicetree/base/model"):
        if (model := system.text(name)) is not None:
            return model
    vendor = system.text("/sys/class/dmi/id/sys_vendor")
    product = system.text("/sys/class/dmi/id/product_name")
    return " ".join(part for part in (vendor, product) if part) or None


def _allowed(system: SystemFiles) -> int | None:
    """The bits of this process's mask (kernel, Documentation/filesystems/proc.rst, "status")."""
    for line in (system.text("/proc/self/status") or "").splitlines():
        name, _, mask = line.partition(":")
        if name == "Cpus_allowed":
            with contextlib.suppress(ValueError):
                return int(mask.replace(",", ""), 16).bit_count() or None
    return None


def _model(pairs: list[tuple[str, str]]) -> str | None:
    for key, value in pairs:
        if key == "model name" and value:
            return value
    makers = [value for key, value in pairs if key == "CPU implementer"]
    parts = [value for key, value in pairs if key == "CPU part"]
    kinds = {
        _ARM_CORES.get((maker, part), f"Arm core {part} of maker {maker}")
        for maker, part in zip(makers, parts, strict=False)
    }
    return " + ".join(sorted(kinds)) or None
