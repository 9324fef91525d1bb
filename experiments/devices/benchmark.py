"""Predicted against measured: the peak memory of training, each plan in a fresh process.

A prediction is good within 20 % or 30 MB. Needs Linux (``/proc/self/clear_refs``); takes some
seconds a line, on one thread.

Example:
    python experiments/devices/benchmark.py --models vit-tiny --batch-sizes 8
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from case import SLOTS_OF, TASK_OF, Case, plans, task_of

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


def cases(model: str, layout: Layout, batch_sizes: list[int]) -> Iterator[Case]:
    """Every plan at every batch size."""
    for batch_size in batch_sizes:
        for plan, trained in plans(layout).items():
            yield Case(model, plan, trained, batch_size)


def main() -> int:
    """Print the table; 1 if a prediction is too far off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=TASK_OF, default=list(TASK_OF))
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[8, 32])
    parser.add_argument("--json", type=Path, help="write the rows there as well")
    args = parser.parse_args()
    print(f"{'model':12}{'plan':15}{'batch':>6}{'modelled':>10}{'measured':>10}{'ratio':>7}")
    rows = []
    for model in args.models:
        layout = task_of(model).layout()
        for case in cases(model, layout, args.batch_sizes):
            found = row(case, layout)
            rows.append(found)
            print(
                f"{model:12}{case.plan:15}{case.batch_size:6}{found.modelled_bytes / 1e6:7.0f} MB"
                f"{found.measured_bytes / 1e6:7.0f} MB"
                f"{found.modelled_bytes / found.measured_bytes:7.2f}"
                f"{'' if found.good else '  too far off'}",
                flush=True,
            )
    bad = sum(not found.good for found in rows)
    print(f"{len(rows) - bad} of {len(rows)} within 20 % or 30 MB")
    if args.json:
        args.json.write_text(json.dumps([asdict(found) for found in rows], indent=1))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
