"""The claims, each with what came out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from generalised import Setting, discrepancies
from theory import (
    cos_square_at,
    cos_square_of_gradient,
    explained,
    minimiser,
    ratio,
    ratio_after_freezing,
)
from two_clients import Model, Values, contraction, descend, play

ROUNDS, STEPS, RATE = 80, 50, 0.1
FROZEN_STEPS = (1, 2, 5, 10, 25)


@dataclass(frozen=True)
class Claim:
    """One claim of the paper or of what follows from it.

    Attributes:
        number: for references.
        paper: what it says.
        found: what came out.
        holds: whether that is so.
        must: whether theory demands it; others are reported as they come out.
    """

    number: str
    paper: str
    found: str
    holds: bool
    must: bool = True

    @property
    def verdict(self) -> str:
        """For the table."""
        return "holds" if self.holds else "does not hold"


def all_claims(seeds: int) -> list[Claim]:
    """Every claim, computed now."""
    return [
        conservation(seeds),
        minimisers(seeds),
        contraction_of_fedavg(seeds),
        contraction_from_gradients(seeds),
        faster_than_fedavg(seeds),
        contraction_of_fedbug(seeds),
        fedbabu(seeds),
        negative_output(),
        not_convex(),
        *generalisations(),
    ]


def conservation(seeds: int) -> Claim:
    """a^2 - v^2 along the course of small steps."""
    start = Model.drawn(seeds)
    before = start.a**2 - start.v**2
    drift = []
    for rate in (1e-3, 1e-4):
        a, v = descend(start.a, start.v, steps=int(5 / rate), frozen_steps=0, rate=rate)
        drift.append(float(np.abs(a**2 - v**2 - before).max()))
    return Claim(
        "FB1",
        "local training keeps a^2 - v^2 as the step size goes to 0",
        f"largest drift {drift[0]:.1e} at step size 1e-3, {drift[1]:.1e} at 1e-4",
        drift[1] < 0.2 * drift[0],
    )


def minimisers(seeds: int) -> Claim:
    """The closed form against many small steps."""
    start = Model.drawn(seeds)
    a, v = descend(start.a, start.v, steps=200_000, frozen_steps=0, rate=1e-4)
    expected = minimiser(start.a, start.v)
    off = max(float(np.abs(a - expected[0]).max()), float(np.abs(v - expected[1]).max()))
    return Claim("FB2", "local minimisers in closed form", f"largest error {off:.1e}", off < 1e-3)


def _measured(seeds: int, frozen_steps: int) -> tuple[Values, Values, list[Model]]:
    """Measured ratios, v near the minimum, and the course."""
    course = play(
        Model.drawn(seeds), rounds=ROUNDS, frozen_steps=frozen_steps, steps=STEPS, rate=RATE
    )
    v = np.mean([model.v for model in course[-10:]], axis=0)
    return contraction(course), v, course


def contraction_of_fedavg(seeds: int) -> Claim:
    """R by the angle at the minimum."""
    measured, v, _ = _measured(seeds, 0)
    fit = explained(measured, ratio(cos_square_at(v)))
    return Claim(
        "FB3",
        "FedAvg shrinks |a - b| by r = 1 - sin^2(theta) / 2 in a round (authors: R^2 = .999945)",
        f"R^2 = {fit:.6f} over {seeds} seeds, mean r {measured.mean():.4f}",
        fit > 0.999,
    )


def contraction_from_gradients(seeds: int) -> Claim:
    """R by the angle that the client's gradient has in the rounds that are measured."""
    measured, _, course = _measured(seeds, 0)
    cos_square = np.mean([cos_square_of_gradient(model) for model in course[10:19]], axis=0)
    fit = explained(measured, ratio(cos_square))
    return Claim(
        "FB3g",
        "the same with theta estimated from the client's gradient, as the text does",
        f"R^2 = {fit:.6f}",
        fit > 0.999,
    )


def faster_than_fedavg(seeds: int) -> Claim:
    """Each seed, each k, against the theory of FedAvg at the same minimum."""
    means, slower = [], 0
    for frozen_steps in FROZEN_STEPS:
        measured, v, _ = _measured(seeds, frozen_steps)
        means.append(float(measured.mean()))
        slower += int((measured >= ratio(cos_square_at(v))).sum())
    listed = ", ".join(f"{k}: {r:.4f}" for k, r in zip(FROZEN_STEPS, means, strict=True))
    return Claim(
        "FB4",
        "FedBug shrinks faster than FedAvg for every seed, the more the longer v is frozen",
        f"mean r by frozen steps {listed}; {slower} of {seeds * len(FROZEN_STEPS)} not faster",
        slower == 0 and means == sorted(means, reverse=True),
    )


def contraction_of_fedbug(seeds: int) -> Claim:
    """r_k against what is measured."""
    off, fits = 0.0, []
    for frozen_steps in FROZEN_STEPS:
        measured, v, _ = _measured(seeds, frozen_steps)
        predicted = ratio_after_freezing(v, frozen_steps, RATE)
        off = max(off, float(np.abs(measured - predicted).max()))
        fits.append(explained(measured, predicted))
    return Claim(
        "FB5",
        "with v frozen for k steps, r_k = (1 + (1 - 2 eta v^2)^k cos^2 theta) / 2",
        f"R^2 >= {min(fits):.6f}, largest error {off:.1e}",
        min(fits) > 0.999 and off < 2e-3,
    )


def fedbabu(seeds: int) -> Claim:
    """The last layer never trains; K steps leave q = (1 - 2 eta v^2)^K: r = (1 + q) / 2."""
    measured, v, _ = _measured(seeds, STEPS)
    left = (1 - 2 * RATE * v**2) ** STEPS
    off = float(np.abs(measured - (1 + left) / 2).max())
    converged = left < 1e-3
    from_half = float(np.abs(measured[converged] - 0.5).max())
    return Claim(
        "FB6",
        "FedBABU's ratio is 1/2 once local training has converged",
        f"off by {from_half:.1e} at most over the {int(converged.sum())} seeds in which {STEPS} "
        f"steps leave less than 1e-3 of an error; of (1 + q) / 2 by {off:.1e} over all",
        from_half < 1e-3 and off < 1e-6,
    )


def negative_output() -> Claim:
    """relu(a) v with v below 0: a frozen v keeps the output from rising above 0."""
    a, v = np.array([1.0]), np.array([-0.5])
    outputs = {}
    for name, frozen_steps in (("FedBABU", 10**9), ("FedBug", 10)):
        first, last = a.copy(), v.copy()
        for step in range(2_000):
            hidden = np.maximum(first, 0)
            error = 2 * (hidden * last - 1)
            of_first, of_last = error * last * (first > 0), error * hidden
            first = first - 0.01 * of_first
            if step >= frozen_steps:
                last = last - 0.01 * of_last
        outputs[name] = float((np.maximum(first, 0) * last)[0])
    return Claim(
        "FB7",
        "with a ReLU and v below 0, FedBABU's output never rises above 0; FedBug's can",
        f"outputs after 2,000 steps towards 1: FedBABU {outputs['FedBABU']:.3f}, "
        f"FedBug {outputs['FedBug']:.3f}",
        outputs["FedBABU"] <= 0 < outputs["FedBug"],
    )


def not_convex() -> Claim:
    """The Hessian of (a v - 1)^2 at (0.1, 0.1)."""
    a = v = 0.1
    hessian = np.array([[2 * v**2, 4 * a * v - 2], [4 * a * v - 2, 2 * a**2]])
    low, high = np.linalg.eigvalsh(hessian).tolist()
    return Claim(
        "FB12",
        "the loss is not convex: at a = v = 0.1 its Hessian has a negative eigenvalue",
        f"eigenvalues {low:.2f} and {high:.2f}",
        low < 0 < high,
    )


def generalisations() -> list[Claim]:
    """FedBug against FedAvg where the paper has no theory, as it comes out."""
    cases = {
        "4 clients": Setting(clients=4),
        "8 clients": Setting(clients=8),
        "inputs 30 % towards their mean": Setting(angle=0.3),
        "inputs 60 % towards their mean": Setting(angle=0.6),
        "4 features": Setting(width=4),
        "3 layers": Setting(layers=3),
        "4 layers": Setting(layers=4),
    }
    return [_general(name, setting) for name, setting in cases.items()]


def _general(name: str, setting: Setting) -> Claim:
    seeds, rounds, period = 20, 40, 5
    ends = {
        who: np.array(
            [discrepancies(setting, s, rounds=rounds, period=p)[-1] for s in range(seeds)]
        )
        for who, p in (("FedAvg", 0), ("FedBug", period))
    }
    better = int((ends["FedBug"] < ends["FedAvg"]).sum())
    medians = {who: float(np.median(values)) for who, values in ends.items()}
    return Claim(
        f"general, {name}",
        "FedBug comes closer than FedAvg (future work in the paper)",
        f"closer for {better} of {seeds} seeds; median error after {rounds} rounds "
        f"FedBug {medians['FedBug']:.1e}, FedAvg {medians['FedAvg']:.1e}",
        better > seeds / 2,
        must=False,
    )
