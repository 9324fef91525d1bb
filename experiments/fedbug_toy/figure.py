"""Measured contraction against theory, for FedAvg and FedBug, one point for each seed."""

from __future__ import annotations

import io

import matplotlib as mpl
import numpy as np
from theory import cos_square_at, ratio, ratio_after_freezing
from two_clients import Model, contraction, play

mpl.use("Agg")
mpl.rcParams["svg.hashsalt"] = "fedfreeze"  # the same bytes each time

from matplotlib import pyplot as plt  # noqa: E402 - the backend is chosen first


def ratios_svg(seeds: int) -> str:
    """Left: against r of FedAvg; right: against r_k of what was run."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True)
    for frozen_steps in (0, 1, 2, 5, 10, 25):
        course = play(Model.drawn(seeds), rounds=80, frozen_steps=frozen_steps)
        measured = contraction(course)
        v = np.mean([model.v for model in course[-10:]], axis=0)
        name = f"FedBug, {frozen_steps} of 50" if frozen_steps else "FedAvg"
        left.plot(ratio(cos_square_at(v)), measured, ".", label=name)
        right.plot(ratio_after_freezing(v, frozen_steps), measured, ".", label=name)
    for axes, label in ((left, "r of FedAvg, theory"), (right, "r_k, theory")):
        axes.plot([0.5, 1], [0.5, 1], "k-", linewidth=0.6)
        axes.set_xlabel(label)
        axes.grid(alpha=0.3)
    left.set_ylabel("|a - b| after a round over before, measured")
    right.legend(fontsize=8)
    figure.tight_layout()
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()
