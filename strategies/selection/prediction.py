"""What each client's round would be if it were asked, for the rules that read it."""

from __future__ import annotations

from collections.abc import Iterable

from fedfreeze.errors import PlanError
from strategies.asking import Asking
from strategies.clients import Client
from strategies.planner import fit
from strategies.selection.rule import Prediction
from strategies.selection.work import work_of


def predictions(asking: Asking, clients: Iterable[Client]) -> dict[str, Prediction]:
    """By device id; none for clients on which no plan fits."""
    found = {}
    for client in clients:
        wanted = asking.wanted(client)
        try:
            plan = fit(
                wanted.advice,
                layout=asking.policy.layout,
                capacity=wanted.capacity,
                limits=asking.limits,
                load=wanted.load,
            )
        except PlanError:
            continue
        if plan.cost is not None:
            work = work_of(plan, asking.policy.layout, client.examples)
            found[client.device_id] = Prediction(plan.cost.modelled_total_s, work)
    return found
