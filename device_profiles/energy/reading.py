"""What an energy meter says, and the interface that all of them have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

EnergySource = Literal["ina3221", "ina219", "pmic", "rapl", "model"]
Scope = Literal["board", "processor", "rails"]


@dataclass(frozen=True)
class EnergyReading:
    """Energy between a start and a stop.

    Attributes:
        energy_j: joules; None where nothing could be read.
        source: the kind of sensor, or "model" for a board's power times the seconds.
        scope: what is counted: "board", "processor" or "rails" (some supply lines of the board).
        samples: how many times the sensor was read; 0 for a model.
        sample_rate_hz: mean rate of reading; None with fewer than two samples.
        gaps_s: seconds between samples that lie far apart, and before the first or after the last
            one; what was drawn there is interpolated, or taken for what it was at the nearest.
    """

    energy_j: float | None
    source: EnergySource
    scope: Scope
    samples: int
    sample_rate_hz: float | None
    gaps_s: float


class EnergyMeter(Protocol):
    """Measures one stretch of time; it may be started again after a stop."""

    def start(self) -> None:
        """Begin to measure."""

    def stop(self) -> EnergyReading:
        """End, and say what was measured since the start."""


class FakeMeter:
    """A meter that says what it was told.

    >>> meter = FakeMeter(EnergyReading(2.5, "rapl", "processor", 3, 1.0, 0.0))
    >>> meter.start()
    >>> meter.stop().energy_j
    2.5
    """

    def __init__(self, reading: EnergyReading) -> None:
        self._reading = reading
        self.starts = 0

    def start(self) -> None:
        """See :class:`EnergyMeter`."""
        self.starts += 1

    def stop(self) -> EnergyReading:
        """See :class:`EnergyMeter`."""
        return self._reading
