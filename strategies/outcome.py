"""What comes of a round that one board is asked for: a plan with what it costs, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass

from device_profiles.board import Board
from device_profiles.cost import plan_cost
from fedfreeze.capacity import Capacity
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layout
from fedfreeze.plan import Plan, PlanCost
from strategies.bounds import Limits, Load
from strategies.envelope import EnvelopeBound
from strategies.freeze.policy import Advice
from strategies.own_plan import own_plan
from strategies.planner import fit
from strategies.schema import Strategy


@dataclass(frozen=True)
class Refusal:
    """Why a board sits out: the limit that is short, and by how much in words."""

    limit: str
    detail: str


@dataclass(frozen=True)
class Planned:
    """What a board that takes part would do.

    Attributes:
        plan: that it trains by.
        envelope_bytes: that its reply may weigh beside the packet.
        cost: with the largest packet; joules of the board's own work.
    """

    plan: Plan
    envelope_bytes: int
    cost: PlanCost

    @property
    def upload_bytes(self) -> int:
        """Of the largest reply."""
        return self.plan.upload_budget_bytes + self.envelope_bytes


def outcome_of(
    settings: Strategy,
    layout: Layout,
    limits: Limits,
    *,
    device_id: str,
    board: Board,
    advice: Advice,
    known: Capacity,
    capacity: Capacity,
    load: Load,
) -> Planned | Refusal:
    """The server's fit of the advice, and the board's own of that.

    Args:
        settings: of the run.
        layout: of its model, with costs.
        limits: of every client.
        device_id: of the board.
        board: whose watts count.
        advice: of the policy and of coverage.
        known: what the server plans with.
        capacity: what the board can do when the order has come.
        load: of its round.
    """
    try:
        own = own_plan(
            fit(advice, layout=layout, capacity=known, limits=limits, load=load),
            layout=layout,
            capacity=capacity,
            limits=limits,
            load=load,
            bound=EnvelopeBound(settings, layout, device_id),
        )
    except PlanError as error:
        return Refusal(error.limit, str(error))
    cost = plan_cost(
        layout,
        own.plan.stages,
        examples=load.examples,
        epochs=own.plan.epochs,
        batch_size=own.plan.micro_batch_size,
        optimizer_slots=limits.optimizer_slots,
        capacity=capacity,
        download_bytes=load.download_bytes,
        upload_bytes=own.plan.upload_budget_bytes + own.envelope_bytes,
        power=board.power,
    )
    return Planned(own.plan, own.envelope_bytes, cost)
