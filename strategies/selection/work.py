"""How much a plan trains: what a board brings to a round."""

from __future__ import annotations

from fedfreeze.layout import Layout
from fedfreeze.plan import Plan


def work_of(plan: Plan, layout: Layout, examples: int) -> float:
    """Parameters that train, each counted once for every example that it trains on."""
    parameters = sum(
        stage.share * sum(layout[name].parameter_count for name in stage.layers)
        for stage in plan.stages
    )
    return float(plan.epochs * examples * parameters)
