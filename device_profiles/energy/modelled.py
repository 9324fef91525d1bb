"""Energy without a sensor: the power that a board's profile says, times the seconds."""

from __future__ import annotations

from device_profiles.board import Board
from device_profiles.energy.reading import EnergyReading
from fedfreeze.wall_clock import SystemClock, WallClock


class ModelMeter:
    """Takes the board to compute from start to stop."""

    def __init__(self, board: Board, *, clock: WallClock | None = None) -> None:
        self._power_w = board.power.compute.value
        self._clock = SystemClock() if clock is None else clock
        self._begin_s: float | None = None

    def start(self) -> None:
        """See :class:`device_profiles.energy.reading.EnergyMeter`."""
        self._begin_s = self._clock.now()

    def stop(self) -> EnergyReading:
        """See :class:`device_profiles.energy.reading.EnergyMeter`."""
        energy_j = None
        if self._begin_s is not None:
            energy_j = self._power_w * (self._clock.now() - self._begin_s)
        self._begin_s = None
        return EnergyReading(energy_j, "model", "board", 0, None, 0.0)
