"""How close a plan comes to each limit: what an operator reads beside the one that binds."""

from __future__ import annotations

from dataclasses import dataclass

from device_profiles.cost import training_flops
from fedfreeze.layout import Layout
from fedfreeze.units import Dimension
from strategies.bounds import Limits
from strategies.forecast import Planned, Prospect


@dataclass(frozen=True)
class Margin:
    """One limit.

    Attributes:
        limit: by its name in plans where it has one, else in words.
        takes, has: in the base unit of ``dimension``; None for plain numbers.
    """

    limit: str
    takes: float
    has: float
    dimension: Dimension | None

    @property
    def share(self) -> float:
        """Of what there is, what the plan takes."""
        return self.takes / self.has


def margins(
    prospect: Prospect, planned: Planned, layout: Layout, limits: Limits
) -> tuple[Margin, ...]:
    """Every limit that holds for the board, in the order in which the planner looks at them."""
    capacity, plan, cost = prospect.capacity, planned.plan, planned.cost
    uplink = capacity.uplink_bytes_per_s.value * limits.upload_time_s
    found = [
        Margin("memory", cost.modelled_memory_bytes, capacity.memory_bytes.value, Dimension.BYTES),
        Margin("uplink in upload-time", planned.upload_bytes, uplink, Dimension.BYTES),
        Margin(
            "packet of the strategy",
            plan.upload_budget_bytes,
            limits.full_upload_bytes,
            Dimension.BYTES,
        ),
        Margin("round-deadline", cost.modelled_total_s, limits.deadline_s, Dimension.SECONDS),
        Margin("epochs", plan.epochs, limits.epochs, None),
    ]
    if limits.flops_per_round is not None:
        flops = plan.epochs * sum(
            stage.share * training_flops(layout, stage.layers, prospect.load.examples)
            for stage in plan.stages
        )
        found.append(Margin("flops-per-round", flops, limits.flops_per_round, None))
    if limits.upload_bytes_per_round is not None:
        found.append(
            Margin(
                "upload-bytes-per-round",
                planned.upload_bytes,
                limits.upload_bytes_per_round,
                Dimension.BYTES,
            )
        )
    if limits.energy_j_per_round is not None and cost.modelled_energy_j is not None:
        found.append(
            Margin(
                "energy-j-per-round",
                cost.modelled_energy_j,
                limits.energy_j_per_round,
                Dimension.JOULES,
            )
        )
    return tuple(found)
