"""What a board makes of a suggestion: fitted again to what it can do now; it may only shrink.

A board runs this when an order comes. Whoever forecasts a round runs it, too, since a long reply
can leave a packet less room than the server took it to have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from fedfreeze.capacity import Capacity
from fedfreeze.layout import Layout
from fedfreeze.messages import NO_TEXT
from fedfreeze.plan import Plan
from strategies.bounds import Limits, Load
from strategies.envelope import EnvelopeBound
from strategies.planner import as_advice, fit


@dataclass(frozen=True)
class OwnPlan:
    """A board's decision.

    Attributes:
        plan: that it trains by.
        envelope_bytes: that the reply may weigh beside its packet.
    """

    plan: Plan
    envelope_bytes: int


def own_plan(
    suggestion: Plan,
    *,
    layout: Layout,
    capacity: Capacity,
    limits: Limits,
    load: Load,
    bound: EnvelopeBound,
) -> OwnPlan:
    """The suggestion, fitted again to what the board can do now.

    Packet and envelope share the uplink. Where the reply may weigh more than the server took it
    to weigh, as with a plan of the board's own in it, the plan is fitted again with that.

    Args:
        suggestion: the server's plan.
        layout: of the model.
        capacity: of the board now.
        limits: of every client.
        load: of the board's round, with the envelope that the server counts on.
        bound: of the board's replies.

    Raises:
        PlanError: not even one of the suggested layers fits.
    """
    asked = replace(limits, epochs=suggestion.epochs, batch_size=suggestion.batch_size)
    while True:
        own = fit(as_advice(suggestion), layout=layout, capacity=capacity, limits=asked, load=load)
        budget = min(own.upload_budget_bytes, suggestion.upload_budget_bytes)
        own = replace(own, upload_budget_bytes=budget)
        needed = bound.most_bytes(own.trained, budget, plan=plan_text(own, suggestion))
        if needed <= load.envelope_bytes:
            return OwnPlan(own, load.envelope_bytes)
        load = replace(load, envelope_bytes=needed)


def plan_text(own: Plan, suggestion: Plan) -> str:
    """A report's ``plan``: nothing if it is the suggestion.

    They may differ in the predicted cost, which moves with every measurement.
    """
    if replace(own, cost=None) == replace(suggestion, cost=None):
        return NO_TEXT
    return json.dumps(own.to_json(), separators=(",", ":"))
