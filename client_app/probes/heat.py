"""Heat, and what the board does about it: a slowed processor makes every timing suspect."""

from __future__ import annotations

from dataclasses import dataclass

from device_profiles.system_files import SystemFiles

# Bits of the Raspberry Pi firmware's answer to `get_throttled`: now in the low half, since the
# board was started 16 bits above (Raspberry Pi documentation, "vcgencmd", get_throttled).
FLAGS = {
    0: "under-voltage",
    1: "frequency capped",
    2: "throttled",
    3: "soft temperature limit",
}
_UNDER_VOLTAGE = FLAGS[0]

# Sensors that are not connected answer with absurd values.
_POSSIBLE_C = (-40.0, 150.0)


@dataclass(frozen=True)
class Heat:
    """What the sensors say; None where there is none.

    Attributes:
        hottest_c: of all thermal zones.
        zone: what that zone calls itself.
        flags: of the firmware now, by :data:`FLAGS`; None without such firmware.
        flags_before: that were set since the board was started.
        cooling: whether the kernel holds the processor's clock down because of heat.
    """

    hottest_c: float | None
    zone: str | None
    flags: frozenset[str] | None
    flags_before: frozenset[str] | None
    cooling: bool | None

    @property
    def is_slowed(self) -> bool | None:
        """Whether the processor runs below its clock now; None where nothing says it.

        Under-voltage counts: the firmware lowers the clock with it.
        """
        if self.flags is None:
            return self.cooling
        return bool(self.flags) or bool(self.cooling)


def heat_now(system: SystemFiles) -> Heat:
    """Read thermal zones, cooling devices and the firmware of a Raspberry Pi."""
    zone, hottest = _hottest(system)
    bits = _firmware_bits(system)
    flags = None if bits is None else _named(bits)
    if flags is None and (alarm := _voltage_alarm(system)) is not None:
        flags = frozenset({_UNDER_VOLTAGE} if alarm else ())
    return Heat(
        hottest_c=hottest,
        zone=zone,
        flags=flags,
        flags_before=None if bits is None else _named(bits >> 16),
        cooling=_cooling(system),
    )


def _hottest(system: SystemFiles) -> tuple[str | None, float | None]:
    zones = []
    for folder in system.found("/sys/class/thermal/thermal_zone*"):
        millidegrees = system.whole(f"{folder}/temp")
        if millidegrees is not None and _POSSIBLE_C[0] < millidegrees / 1000 < _POSSIBLE_C[1]:
            zones.append((millidegrees / 1000, system.text(f"{folder}/type") or "unnamed"))
    if not zones:
        return None, None
    hottest, zone = max(zones)
    return zone, hottest


def _cooling(system: SystemFiles) -> bool | None:
    """Only devices that slow the processor: a fan that turns is no trouble."""
    states = []
    for folder in system.found("/sys/class/thermal/cooling_device*"):
        kind = (system.text(f"{folder}/type") or "").lower()
        state = system.whole(f"{folder}/cur_state")
        if state is not None and ("cpufreq" in kind or kind == "processor"):
            states.append(state)
    return any(states) if states else None


def _firmware_bits(system: SystemFiles) -> int | None:
    """The kernel's file first: a container has it without the command and its device."""
    text = system.text("/sys/devices/platform/soc/soc:firmware/get_throttled")
    text = text or system.command("vcgencmd", "get_throttled") or ""
    try:
        return int(text.removeprefix("throttled="), 16)
    except ValueError:
        return None


def _voltage_alarm(system: SystemFiles) -> bool | None:
    for folder in system.found("/sys/class/hwmon/hwmon*"):
        if system.text(f"{folder}/name") == "rpi_volt":
            alarm = system.whole(f"{folder}/in0_lcrit_alarm")
            return None if alarm is None else alarm != 0
    return None


def _named(bits: int) -> frozenset[str]:
    return frozenset(name for bit, name in FLAGS.items() if bits >> bit & 1)
