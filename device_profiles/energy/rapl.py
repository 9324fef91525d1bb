"""The energy counters of x86 processors (RAPL), as the kernel's powercap shows them.

Linux, Documentation/power/powercap/powercap.rst: ``energy_uj`` counts microjoules and starts anew
after ``max_energy_range_uj``. Only whole packages are summed: their parts are among them.
"""

from __future__ import annotations

from device_profiles.energy.integral import gaps_s, sample_rate_hz
from device_profiles.energy.reading import EnergyReading
from device_profiles.energy.ticker import ThreadTicker, Ticker
from device_profiles.system_files import SystemFiles
from fedfreeze.wall_clock import SystemClock, WallClock

# A package of 250 W takes 17 minutes to the usual end of its counter: that must not pass unseen.
_INTERVAL_S = 60.0


def packages(system: SystemFiles) -> list[str]:
    """The folders of all packages with a counter, whether this user may read it or not."""
    folders = system.found("/sys/class/powercap/intel-rapl:*")
    return [f for f in folders if (system.text(f"{f}/name") or "").startswith("package-")]


def is_denied(system: SystemFiles) -> bool:
    """Whether there are counters and this user may not read them."""
    return any(system.is_denied(f"{folder}/energy_uj") for folder in packages(system))


class RaplMeter:
    """Sums the differences of the counters of all packages."""

    def __init__(
        self,
        system: SystemFiles,
        *,
        clock: WallClock | None = None,
        ticker: Ticker | None = None,
    ) -> None:
        self._system = system
        self._clock = SystemClock() if clock is None else clock
        self._ticker = ThreadTicker() if ticker is None else ticker
        self._folders = packages(system)
        self._times_s: list[float] = []
        self._last_uj: dict[str, int] = {}
        self._energy_uj = 0
        self._is_whole = True

    def start(self) -> None:
        """See :class:`device_profiles.energy.reading.EnergyMeter`."""
        self._times_s, self._last_uj, self._energy_uj = [], {}, 0
        self._is_whole = bool(self._folders)
        self._take()
        self._ticker.start(self._take, _INTERVAL_S)

    def stop(self) -> EnergyReading:
        """See :class:`device_profiles.energy.reading.EnergyMeter`."""
        self._ticker.stop()
        self._take()
        known = self._is_whole and len(self._times_s) >= 2
        return EnergyReading(
            energy_j=self._energy_uj * 1e-6 if known else None,
            source="rapl",
            scope="processor",
            samples=len(self._times_s),
            sample_rate_hz=sample_rate_hz(self._times_s),
            gaps_s=gaps_s(self._times_s, _INTERVAL_S),
        )

    def _take(self) -> None:
        counters = {f: self._system.whole(f"{f}/energy_uj") for f in self._folders}
        if None in counters.values():
            self._is_whole = False
            return
        for folder, counter in counters.items():
            assert counter is not None
            passed = counter - self._last_uj.get(folder, counter)
            if passed < 0:
                end = self._system.whole(f"{folder}/max_energy_range_uj")
                self._is_whole = self._is_whole and end is not None
                passed += end or 0
            self._energy_uj += passed
            self._last_uj[folder] = counter
        self._times_s.append(self._clock.now())
