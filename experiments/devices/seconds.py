"""Predicted against measured: the seconds of training, on this machine and one thread.

The prediction is a plan's, with the speed that a board measures of itself: operations over the
FLOP/s of a convolution and a dense layer in small. What a model reaches of that depends on the
sizes of its layers and on what is not counted, so it may be off by some factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch
from case import SLOTS_OF, Case, plans, task_of
from measure import examples_for, initial_model, train_case
from section import Say, Section

from client_app.benchmark import measured_flops_per_s
from device_profiles.cost import plan_cost, training_flops
from fedfreeze.capacity import Capacity, Known
from fedfreeze.layout import Layout
from fedfreeze.plan import Stage

PLANS = ("full", "prefix frozen", "head alone")
BATCH = 8

# Fewer steps are all start-up, more say nothing new.
LEAST_STEPS, MOST_STEPS = 4, 64


@dataclass(frozen=True)
class Timed:
    """One plan with both numbers.

    Attributes:
        steps: of the training.
        measured_s: median of the repetitions.
        flops_per_s: that the prediction was made with.
    """

    model: str
    plan: str
    steps: int
    flops_per_s: float
    modelled_s: float
    measured_s: float

    @property
    def ratio(self) -> float:
        """Modelled over measured."""
        return self.modelled_s / self.measured_s


def modelled_s(layout: Layout, case: Case, steps: int, flops_per_s: float) -> float:
    """What a plan says that so many steps take."""
    speed, other = Known(flops_per_s, "measured"), Known(1.0, "assumed")
    cost = plan_cost(
        layout,
        (Stage(1.0, case.trained),),
        examples=case.batch_size * steps,
        epochs=1,
        batch_size=case.batch_size,
        optimizer_slots=SLOTS_OF[case.optimizer],
        capacity=Capacity(speed, other, other, other),
        download_bytes=0,
        upload_bytes=0,
    )
    return cost.modelled_compute_s


def steps_for(layout: Layout, seconds: float, flops_per_s: float) -> int:
    """How many take about so long with all layers; the same for every plan of a model."""
    step_flops = training_flops(layout, layout.names, BATCH)
    return min(MOST_STEPS, max(LEAST_STEPS, round(seconds * flops_per_s / step_flops)))


def timed(case: Case, layout: Layout, *, steps: int, repeats: int) -> Timed:
    """Train the case once unseen, then with the clock; the speed is measured just before."""
    task = task_of(case.model)
    published = initial_model(task, layout)
    examples = examples_for(task, case.batch_size * steps)
    train_case(task, case, layout, published, examples)
    flops_per_s = measured_flops_per_s(torch.device("cpu"))
    spent = [train_case(task, case, layout, published, examples).train_s for _ in range(repeats)]
    predicted = modelled_s(layout, case, steps, flops_per_s)
    return Timed(case.model, case.plan, steps, flops_per_s, predicted, median(spent))


def run(say: Say, models: Sequence[str], *, about_s: float, repeats: int) -> Section:
    """Time every model under three plans, each for about so long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    say(
        f"{'model':12}{'plan':15}{'steps':>6}{'GFLOP/s':>8}{'modelled':>11}{'measured':>11}{'ratio':>7}"
    )
    rows = []
    for model in models:
        layout = task_of(model).layout()
        steps = steps_for(layout, about_s, measured_flops_per_s(torch.device("cpu")))
        for plan in PLANS:
            case = Case(model, plan, plans(layout)[plan], BATCH)
            found = timed(case, layout, steps=steps, repeats=repeats)
            rows.append(found)
            say(
                f"{model:12}{plan:15}{steps:6}{found.flops_per_s / 1e9:8.1f}"
                f"{found.modelled_s:9.3f} s{found.measured_s:9.3f} s{found.ratio:7.2f}"
            )
    torch.set_num_threads(threads)
    ratios = [found.ratio for found in rows]
    return Section(
        "none for seconds",
        f"ratio from {min(ratios):.2f} to {max(ratios):.2f}, median {median(ratios):.2f}",
        None,
        {"rows": [vars(found) for found in rows]},
    )
