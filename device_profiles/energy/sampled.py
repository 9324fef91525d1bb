"""A meter of a sensor of power: samples, integrated on a monotonic clock."""

from __future__ import annotations

from device_profiles.energy.integral import Sample, energy_j, gaps_s, held, sample_rate_hz
from device_profiles.energy.reading import EnergyReading
from device_profiles.energy.sensors import PowerSensor
from device_profiles.energy.ticker import ThreadTicker, Ticker
from fedfreeze.wall_clock import SystemClock, WallClock


class SampledMeter:
    """Reads a sensor at its interval; a reading that fails leaves a gap, and training goes on."""

    def __init__(
        self, sensor: PowerSensor, *, clock: WallClock | None = None, ticker: Ticker | None = None
    ) -> None:
        self._sensor = sensor
        self._clock = SystemClock() if clock is None else clock
        self._ticker = ThreadTicker() if ticker is None else ticker
        self._samples: list[Sample] = []
        self._begin_s: float | None = None

    def start(self) -> None:
        """See :class:`device_profiles.energy.reading.EnergyMeter`."""
        self._samples, self._begin_s = [], self._clock.now()
        self._take()
        self._ticker.start(self._take, self._sensor.interval_s)

    def stop(self) -> EnergyReading:
        """See :class:`device_profiles.energy.reading.EnergyMeter`."""
        self._ticker.stop()
        self._take()
        end_s = self._clock.now()
        times_s = [sample.at_s for sample in self._samples]
        begin_s = end_s if self._begin_s is None else self._begin_s
        return EnergyReading(
            energy_j=energy_j(held(self._samples, begin_s, end_s)),
            source=self._sensor.source,
            scope=self._sensor.scope,
            samples=len(self._samples),
            sample_rate_hz=sample_rate_hz(times_s),
            gaps_s=gaps_s([begin_s, *times_s, end_s], self._sensor.interval_s),
        )

    def _take(self) -> None:
        power_w = self._sensor.power_w()
        if power_w is not None:
            self._samples.append(Sample(self._clock.now(), power_w))
