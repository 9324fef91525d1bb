"""Operations as they are traced, against formulas worked out from shapes alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from case import task_of
from formulas import FORMULAS, Part, part_of
from section import Say, Section

from fedfreeze.layout import Layout

WITHIN = 0.02
PASSES = ("forward", "inputs", "weights")


@dataclass(frozen=True)
class PartError:
    """How far the trace of one part of a model is from its formula.

    Attributes:
        errors: relative, by name of the pass.
    """

    model: str
    part: str
    errors: Mapping[str, float]


def part_errors(model: str, layout: Layout, parts: Mapping[str, Part]) -> list[PartError]:
    """Every part of a model, with its layers taken together."""
    traced = {part: Part() for part in parts}
    for layer in layout:
        costs = layer.costs
        traced[part_of(layer.name, parts)] += Part(
            costs.forward_flops, costs.input_grad_flops, costs.weight_grad_flops
        )
    return [
        PartError(
            model,
            part,
            {one: _error(getattr(traced[part], one), getattr(parts[part], one)) for one in PASSES},
        )
        for part in parts
    ]


def uncounted(layout: Layout, parts: Mapping[str, Part]) -> float:
    """Share of the forward pass that the trace leaves out: biases, activations, softmax, sums."""
    everything = sum(part.forward + part.left_out for part in parts.values())
    return 1 - sum(layer.costs.forward_flops for layer in layout) / everything


def run(say: Say, models: Sequence[str]) -> Section:
    """Trace each model."""
    heads = ("forward", "input gradient", "weight gradient", "not counted")
    say(f"{'model':12}{'parts':>6}{''.join(f'{head:>17}' for head in heads)}")
    found: list[PartError] = []
    left_out = {}
    for model in models:
        layout, parts = task_of(model).layout(), FORMULAS[model]()
        errors = part_errors(model, layout, parts)
        found += errors
        left_out[model] = uncounted(layout, parts)
        worst = [max(error.errors[one] for error in errors) for one in PASSES]
        cells = "".join(f"{share:>17.4%}" for share in [*worst, left_out[model]])
        say(f"{model:12}{len(errors):6}{cells}")
    every = [error for one in found for error in one.errors.values()]
    return Section(
        f"FLOPs of each part within {WITHIN:.0%} of its formula, below {WITHIN:.0%} not counted",
        f"median {median(every):.4%} off, worst {max(every):.4%} of {len(every)}; "
        f"{max(left_out.values()):.2%} not counted at most",
        max(every) <= WITHIN and max(left_out.values()) < WITHIN,
        {
            "parts": [{"model": e.model, "part": e.part, **e.errors} for e in found],
            "not_counted": left_out,
        },
    )


def _error(traced: float, formula: float) -> float:
    if formula == 0:
        return 0.0 if traced == 0 else math.inf
    return abs(traced / formula - 1)
