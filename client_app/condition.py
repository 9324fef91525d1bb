"""How a board is now: its battery, and whether it is slowed down. Does not import torch."""

from __future__ import annotations

from client_app.probes.battery import battery_now
from client_app.probes.heat import heat_now
from device_profiles.system_files import SystemFiles
from fedfreeze.condition import Condition


def condition_now(system: SystemFiles) -> Condition:
    """What the sensors of this machine say."""
    battery, heat = battery_now(system), heat_now(system)
    return Condition(
        battery_share=None if battery is None else battery.share,
        battery_j=None if battery is None else battery.energy_j,
        is_discharging=None if battery is None else battery.is_discharging,
        is_slowed=heat.is_slowed,
        hottest_c=heat.hottest_c,
    )
