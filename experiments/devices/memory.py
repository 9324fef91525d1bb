"""Predicted against measured: the peak memory of training, each plan in a fresh process.

Needs Linux (``/proc/self/clear_refs``); takes some seconds a line, on one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from case import SLOTS_OF, Case, plans, task_of
from section import Say, Section

from device_profiles.memory import local_training_bytes
from fedfreeze.layout import Layout

ROOT = Path(__file__).parent.parent.parent
WITHIN_SHARE, WITHIN_BYTES = 0.20, 30e6


@dataclass(frozen=True)
class Row:
    """One case with both numbers."""

    case: Case
    modelled_bytes: float
    measured_bytes: int

    @property
    def ratio(self) -> float:
        """Modelled over measured."""
        return self.modelled_bytes / max(1, self.measured_bytes)

    @property
    def good(self) -> bool:
        """Whether the prediction is near enough."""
        error = abs(self.modelled_bytes - self.measured_bytes)
        return error <= max(WITHIN_SHARE * self.measured_bytes, WITHIN_BYTES)


def row(case: Case, layout: Layout) -> Row:
    """Predict, and measure in a process of its own."""
    asked = {"case": case.to_json(), "layout": layout.to_json()}
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "OMP_NUM_THREADS": "1",
    }
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "measure.py")],
        input=json.dumps(asked),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    modelled = local_training_bytes(layout, case.trained, case.batch_size, SLOTS_OF[case.optimizer])
    return Row(case, modelled, int(ended.stdout))


def cases(model: str, layout: Layout, batch_sizes: Sequence[int]) -> Iterator[Case]:
    """Every plan at every batch size."""
    for batch_size in batch_sizes:
        for plan, trained in plans(layout).items():
            yield Case(model, plan, trained, batch_size)


def run(say: Say, models: Sequence[str], batch_sizes: Sequence[int]) -> Section:
    """Train every case."""
    say(f"{'model':12}{'plan':15}{'batch':>6}{'modelled':>10}{'measured':>10}{'ratio':>7}")
    rows = []
    for model in models:
        layout = task_of(model).layout()
        for case in cases(model, layout, batch_sizes):
            found = row(case, layout)
            rows.append(found)
            say(
                f"{model:12}{case.plan:15}{case.batch_size:6}{found.modelled_bytes / 1e6:7.0f} MB"
                f"{found.measured_bytes / 1e6:7.0f} MB{found.ratio:7.2f}"
                f"{'' if found.good else '  too far off'}"
            )
    good = sum(found.good for found in rows)
    ratios = [found.ratio for found in rows]
    return Section(
        f"memory within {WITHIN_SHARE:.0%} or {WITHIN_BYTES / 1e6:.0f} MB",
        f"{good} of {len(rows)}, ratio from {min(ratios):.2f} to {max(ratios):.2f}, "
        f"median {median(ratios):.2f}",
        good == len(rows),
        {
            "rows": [
                {
                    **found.case.to_json(),
                    "modelled_bytes": found.modelled_bytes,
                    "measured_bytes": found.measured_bytes,
                }
                for found in rows
            ]
        },
    )
