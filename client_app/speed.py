"""How fast a board computes, measured once and kept until something that decides it changes."""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from client_app.probes.heat import heat_now
from client_app.probes.processor import processor_now
from device_profiles.system_files import SystemFiles
from fedfreeze.wall_clock import WallClock

FILE = "speed.json"
_FORMAT = 1

# Shorter than a second, since a board measures before its first round; long enough for the clock
# governor to see a busy processor.
_WARM_UP_S = 0.2
_MEASURED_S = 0.5
_LEAST_RUNS = 3


@dataclass(frozen=True)
class SpeedKey:
    """All that decides how fast a board computes; another value of any of it is measured anew.

    Attributes:
        device: "cpu" or "cuda".
        processor: its model.
        cores, quota, threads: how many cores there are, may be used, and OpenMP is told to use.
        governors, most_hz: by which the clock is set, and how far.
        is_slowed: whether heat or under-voltage hold the clock down; None where nothing says it.
        torch: its version.
        allowed: on how many of the cores this process may run.
    """

    device: str
    processor: str | None
    cores: int | None
    quota: float | None
    threads: str | None
    governors: tuple[str, ...]
    most_hz: int | None
    is_slowed: bool | None
    torch: str
    allowed: int | None = None


class Workload(Protocol):
    """Something to compute, with a known number of operations."""

    flops: float

    def run(self) -> None:
        """Compute it once; return when it is done."""


def speed_key(system: SystemFiles, device: str) -> SpeedKey:
    """The key of this machine now. Does not import torch."""
    processor = processor_now(system)
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = "none"
    return SpeedKey(
        device=device,
        processor=processor.model,
        cores=processor.cores,
        quota=processor.quota,
        threads=os.environ.get("OMP_NUM_THREADS"),
        governors=processor.governors,
        most_hz=processor.most_hz,
        is_slowed=heat_now(system).is_slowed,
        torch=torch,
        allowed=processor.allowed,
    )


def kept_flops_per_s(folder: Path, key: SpeedKey) -> float | None:
    """The speed that was measured under this very key; None if there is none to be read."""
    try:
        document = json.loads((folder / FILE).read_text("utf-8"))
        kept = document["format"] == _FORMAT and document["key"] == _plain(key)
        flops_per_s = float(document["flops_per_s"]) if kept else 0.0
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return flops_per_s if math.isfinite(flops_per_s) and flops_per_s > 0 else None


def sustained_flops_per_s(folder: Path, key: SpeedKey, measure: Callable[[], float]) -> float:
    """The kept speed in FLOP/s, or a new measurement, which is kept if the folder can be written.

    Args:
        folder: where a board keeps its state.
        key: under which the speed holds.
        measure: takes about a second.
    """
    flops_per_s = kept_flops_per_s(folder, key)
    if flops_per_s is None:
        flops_per_s = measure()
        document = {"format": _FORMAT, "key": _plain(key), "flops_per_s": flops_per_s}
        with contextlib.suppress(OSError):  # whoever cannot keep it measures again
            _replace(folder / FILE, json.dumps(document))
    return flops_per_s


def rate(
    workload: Workload,
    clock: WallClock,
    *,
    warm_up_s: float = _WARM_UP_S,
    measured_s: float = _MEASURED_S,
) -> float:
    """Median FLOP/s of a workload: run for a while unseen, then for a while with the clock.

    The median, because another program that wakes up for a moment must not decide.
    """
    begin_s = clock.now()
    workload.run()
    while clock.now() - begin_s < warm_up_s:
        workload.run()
    rates: list[float] = []
    begin_s = clock.now()
    while len(rates) < _LEAST_RUNS or clock.now() - begin_s < measured_s:
        before_s = clock.now()
        workload.run()
        # A clock may be too coarse to see the run.
        rates.append(workload.flops / max(clock.now() - before_s, 1e-9))
    return statistics.median(rates)


def _plain(key: SpeedKey) -> dict[str, object]:
    """As JSON reads it back: arrays for tuples."""
    return {**asdict(key), "governors": list(key.governors)}


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{FILE}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
