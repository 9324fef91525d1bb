"""The battery, where a board has one.

Linux, Documentation/ABI/testing/sysfs-class-power: energies in microwatt-hours, charges in
microampere-hours, voltages in microvolts.
"""

from __future__ import annotations

from dataclasses import dataclass

from device_profiles.system_files import SystemFiles

_J_PER_UWH = 3600e-6


@dataclass(frozen=True)
class BatteryCharge:
    """What a battery holds now; None where it does not say.

    Attributes:
        share: of its capacity, 0 to 1.
        energy_j: joules that are left.
        is_discharging: whether the board runs on it.
    """

    share: float | None
    energy_j: float | None
    is_discharging: bool | None


def battery_now(system: SystemFiles) -> BatteryCharge | None:
    """The first battery that feeds the machine itself; None where there is none."""
    for folder in system.found("/sys/class/power_supply/*"):
        kind, scope = system.text(f"{folder}/type"), system.text(f"{folder}/scope")
        is_there = system.whole(f"{folder}/present") != 0  # an empty slot answers, too
        # The battery of a mouse has the scope "Device".
        if kind == "Battery" and scope != "Device" and is_there:
            percent, status = system.whole(f"{folder}/capacity"), system.text(f"{folder}/status")
            return BatteryCharge(
                share=percent / 100 if percent is not None and 0 <= percent <= 100 else None,
                energy_j=_energy_j(system, folder),
                is_discharging=None if status in {None, "Unknown"} else status == "Discharging",
            )
    return None


def _energy_j(system: SystemFiles, folder: str) -> float | None:
    energy_uwh = system.whole(f"{folder}/energy_now")
    if energy_uwh is not None:
        return max(0, energy_uwh) * _J_PER_UWH
    charge_uah = system.whole(f"{folder}/charge_now")
    voltage_uv = system.whole(f"{folder}/voltage_now")
    if charge_uah is None or voltage_uv is None:
        return None
    return max(0, charge_uah * voltage_uv) * 1e-6 * _J_PER_UWH
