"""Which meter a board has: a sensor of the whole board before one of a part, a model at last."""

from __future__ import annotations

from device_profiles.board import Board
from device_profiles.energy.modelled import ModelMeter
from device_profiles.energy.rapl import RaplMeter, is_denied, packages
from device_profiles.energy.reading import EnergyMeter
from device_profiles.energy.sampled import SampledMeter
from device_profiles.energy.sensors import PowerSensor, ina219, ina3221, pmic
from device_profiles.energy.ticker import Ticker
from device_profiles.system_files import SystemFiles
from fedfreeze.wall_clock import WallClock


def power_sensor(system: SystemFiles) -> PowerSensor | None:
    """The sensor of power to read; None where there is none."""
    return ina219(system) or ina3221(system) or pmic(system)


def energy_meter(
    system: SystemFiles,
    board: Board | None,
    *,
    clock: WallClock | None = None,
    ticker: Ticker | None = None,
) -> EnergyMeter | None:
    """The best meter of this machine.

    Args:
        system: the machine's files.
        board: its profile, for a model where it has no sensor; None if nobody knows it.
        clock: monotonic; the machine's own unless given.
        ticker: what reads again and again; a thread unless given.

    Returns:
        None where there is no sensor and no profile.
    """
    if (sensor := power_sensor(system)) is not None:
        return SampledMeter(sensor, clock=clock, ticker=ticker)
    if packages(system) and not is_denied(system):
        return RaplMeter(system, clock=clock, ticker=ticker)
    return None if board is None else ModelMeter(board, clock=clock)
