"""Make tasks/data/watch_activity.json from the windows that the package seglearn publishes.

Each recording is put together again from its overlapping windows, decimated, and stored as
differences of neighbouring samples, which pack better. The same input gives the same file.

Example:
    python experiments/embed_watch_activity.py ~/data/activity/watch_windows_100x6.npz \
        tasks/data/watch_activity.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from tasks.datasets.embedded import pack
from tasks.datasets.watch_activity import CHANNELS, LABELS, LENGTH, STEPS, decimated, recordings


def document(path: Path) -> dict:
    """The embedded file's content."""
    with np.load(path, allow_pickle=False) as stored:
        readings, classes, people = stored["x"], stored["y"], stored["subject"]
    signals, table = [], []
    for run in recordings(classes, people):
        first, rest = readings[run][0], readings[run][1:, LENGTH:]
        signals.append(decimated(np.concatenate([first, *rest])))
        table.append((people[run.start], classes[run.start], len(signals[-1])))
    signal = np.concatenate(signals)
    return {
        "name": "Watch activity, embedded (140 recordings of 10 people, at 25 Hz)",
        "source": "https://github.com/dmbee/seglearn, its data set watch (Burns et al., 2018)",
        "licence": "BSD-3-Clause, Copyright 2018 David M. Burns; the text stands in "
        "watch_activity_LICENSE.md",
        "encoding": "each array is int16 in C order, compressed as .xz and written in base85",
        "labels": LABELS,
        "channels": CHANNELS,
        "steps": {"acceleration_g": STEPS[0], "rotation_rad_per_s": STEPS[-1]},
        "arrays": {
            "signal_differences": pack(np.diff(signal.T, axis=1, prepend=np.int16(0))),
            "recordings": pack(np.array(table, np.int16)),
        },
    }


def main() -> None:
    """Read the one file, write the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("windows", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    text = json.dumps(document(arguments.windows), indent=1) + "\n"
    arguments.out.write_text(text, "ascii")


if __name__ == "__main__":
    main()
