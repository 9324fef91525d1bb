"""Draw the README's figure from the records of past runs.

Example:
    fedfreeze run --strategy fedavg --name dense
    fedfreeze run --strategy fedfreeze --name frozen
    python experiments/readme_figure.py ~/.fedfreeze/runs/dense ~/.fedfreeze/runs/frozen \
        --out docs/images/accuracy.svg

Needs the extra ``plots``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
# The same records give the same file.
mpl.rcParams["svg.hashsalt"] = "fedfreeze"
mpl.rcParams["svg.fonttype"] = "none"

from matplotlib import pyplot as plt  # noqa: E402 - the backend is chosen first

FROZEN, TRAINED = "#4c78a8", "#e8eef4"
REASONS = {"memory": "#b23b3b", "uplink": "#d98e2b", "compute": "#8a6fb0", "score": "#4c78a8"}


def read(run: Path, name: str) -> list[dict]:
    """The records of one file of a run."""
    return [json.loads(line) for line in (run / name).read_text("utf-8").splitlines()]


def draw_curves(axes: plt.Axes, runs: list[Path]) -> None:
    """Three-round mean accuracy over the uplink bytes so far."""
    for run in runs:
        rounds = read(run, "rounds.jsonl")
        sent, megabytes, accuracy = 0.0, [], []
        for at, record in enumerate(rounds):
            sent += record["upload_bytes"] / 1e6
            last = rounds[max(0, at - 2) : at + 1]
            megabytes.append(sent)
            accuracy.append(sum(r["test_accuracy"] for r in last) / len(last))
        axes.plot(megabytes, accuracy, label=f"{run.name}: {sent:.1f} MB")
    axes.set(xscale="log", xlabel="uplink so far, all boards [MB]", ylabel="test accuracy")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", frameon=False)


def draw_freezing(axes: plt.Axes, run: Path) -> None:
    """For each board and layer, the share of rounds in which it was frozen, by main reason."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    labels: dict[str, str] = {}
    for record in read(run, "decisions.jsonl"):
        if "device_id" not in record:  # of the choice of a cohort
            continue
        labels[record["device_id"]] = record.get("profile", labels.get(record["device_id"], ""))
        for layer, decision in record.get("layers", {}).items():
            reasons = counts.setdefault((record["device_id"], layer), {"rounds": 0})
            reasons["rounds"] += 1
            if decision["decision"] == "freeze":
                code = "score" if decision["reason"] == "window" else decision["reason"]
                reasons[code] = reasons.get(code, 0) + 1
    devices, layers = sorted(labels), list(dict.fromkeys(layer for _, layer in counts))
    for row, device in enumerate(devices):
        for column, layer in enumerate(layers):
            reasons = dict(counts.get((device, layer), {"rounds": 1}))
            rounds, left = reasons.pop("rounds"), column - 0.45
            axes.barh(row, 0.9, left=left, height=0.8, color=TRAINED)
            for code, count in sorted(reasons.items()):
                width = 0.9 * count / rounds
                axes.barh(row, width, left=left, height=0.8, color=REASONS.get(code, FROZEN))
                left += width
    axes.set_xticks(range(len(layers)), layers)
    axes.set_yticks(range(len(devices)), [labels[device] for device in devices])
    axes.invert_yaxis()
    axes.set_title("share of rounds in which a layer was frozen", fontsize=10)
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in REASONS.values()]
    axes.legend(handles, REASONS, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4,
                frameon=False)  # fmt: skip
    axes.spines[:].set_visible(False)


def main() -> None:
    """Read the arguments and write the figure."""
    parser = argparse.ArgumentParser(description="Draw accuracy over uplink, and who froze what.")
    parser.add_argument("runs", nargs="+", type=Path, help="run folders; the last one's freezing")
    parser.add_argument("--out", type=Path, default=Path("accuracy.svg"))
    given = parser.parse_args()
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(1, 1.1))
    draw_curves(left, given.runs)
    draw_freezing(right, given.runs[-1])
    figure.tight_layout()
    figure.savefig(given.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
