"""Sensors of power: what each kind reads, in watts.

- INA3221 (Jetson): three channels. Mainline kernels and JetPack 5 on have it as hwmon, with
  millivolts in ``inN_input`` and milliamperes in ``currN_input``; JetPack 4 as an iio device with
  milliwatts in ``in_powerN_input`` (kernel, Documentation/hwmon/ina3221.rst; Jetson Linux
  Developer Guide, "Power monitoring").
- INA219 (a board's add-on): one channel as hwmon, microwatts in ``power1_input`` (kernel,
  Documentation/hwmon/ina2xx.rst).
- The power chip of the Raspberry Pi 5: ``vcgencmd pmic_read_adc`` gives volts and amperes of its
  rails. What is drawn from 5 V directly, as by USB devices, is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from device_profiles.energy.reading import EnergySource
from device_profiles.system_files import SystemFiles

# Channels that carry all that the board draws, as NVIDIA labels them; the others are parts of it.
_WHOLE_BOARD = ("VDD_IN", "POM_5V_IN", "VDD_IN_5V0")

_PMIC = re.compile(r"(\S+)_(A|V)\s+(?:current|volt)\(\d+\)=([0-9]+(?:\.[0-9]+)?)[AV]")


@dataclass(frozen=True)
class PowerSensor:
    """A sensor of power.

    Attributes:
        source: its kind.
        scope: what it covers.
        interval_s: how often it is worth reading.
        power_w: reads it; None where it does not answer now.
    """

    source: EnergySource
    scope: Literal["board", "rails"]
    interval_s: float
    power_w: Callable[[], float | None]


def ina3221(system: SystemFiles) -> PowerSensor | None:
    """The Jetson's sensor; None where there is none."""
    folders = _hwmon(system, "ina3221")
    channels = [(f, str(n)) for f in folders for n in (1, 2, 3) if _has(system, f, n)]
    labels = {(f, n): system.text(f"{f}/in{n}_label") or "" for f, n in channels}
    if channels:
        return _of_channels(labels, lambda f, n: _volts_times_amperes(system, f, n))
    folders = system.found("/sys/bus/i2c/drivers/ina3221x/*/iio:device*")
    channels = [(f, str(n)) for f in folders for n in (0, 1, 2)]
    named = {(f, n): system.text(f"{f}/rail_name_{n}") for f, n in channels}
    labels = {channel: label for channel, label in named.items() if label is not None}
    if not labels:
        return None
    return _of_channels(labels, lambda f, n: _scaled(system.whole(f"{f}/in_power{n}_input"), 1e-3))


def ina219(system: SystemFiles) -> PowerSensor | None:
    """The add-on's sensor; None where there is none."""
    folders = _hwmon(system, "ina219")
    if not folders:
        return None
    power = f"{folders[0]}/power1_input"
    return PowerSensor("ina219", "board", 0.2, lambda: _scaled(system.whole(power), 1e-6))


def pmic(system: SystemFiles) -> PowerSensor | None:
    """The Raspberry Pi 5's power chip; None where there is none."""

    def power_w() -> float | None:
        return pmic_power_w(system.command("vcgencmd", "pmic_read_adc") or "")

    # Each reading starts a program.
    return None if power_w() is None else PowerSensor("pmic", "rails", 1.0, power_w)


def pmic_power_w(text: str) -> float | None:
    """The watts of all rails of which ``pmic_read_adc`` gives both volts and amperes.

    >>> pmic_power_w("3V3_SYS_A current(1)=0.5A 3V3_SYS_V volt(9)=3.3V EXT5V_V volt(24)=5.1V")
    1.65
    """
    values = {(rail, unit): float(value) for rail, unit, value in _PMIC.findall(text)}
    rails = [rail for rail, unit in values if unit == "A" and (rail, "V") in values]
    return sum(values[rail, "A"] * values[rail, "V"] for rail in rails) if rails else None


def _hwmon(system: SystemFiles, name: str) -> list[str]:
    folders = system.found("/sys/class/hwmon/hwmon*")
    return [folder for folder in folders if system.text(f"{folder}/name") == name]


def _has(system: SystemFiles, folder: str, channel: int) -> bool:
    return system.whole(f"{folder}/curr{channel}_input") is not None


def _of_channels(
    labels: dict[tuple[str, str], str], power_w: Callable[[str, str], float | None]
) -> PowerSensor:
    """The channel of the whole board alone, or else all channels together."""
    whole = [channel for channel, label in labels.items() if label in _WHOLE_BOARD]
    chosen = whole[:1] or list(labels)

    def total_w() -> float | None:
        parts = [power_w(*channel) for channel in chosen]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    return PowerSensor("ina3221", "board" if whole else "rails", 0.2, total_w)


def _volts_times_amperes(system: SystemFiles, folder: str, channel: str) -> float | None:
    millivolts = system.whole(f"{folder}/in{channel}_input")
    milliamperes = system.whole(f"{folder}/curr{channel}_input")
    if millivolts is None or milliamperes is None:
        return None
    return millivolts * milliamperes * 1e-6


def _scaled(value: int | None, factor: float) -> float | None:
    return None if value is None else value * factor
