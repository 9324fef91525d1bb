"""What each simulated board will do in a round, without a server, a board or a model.

It takes the very steps of a round: the selection, the policy's advice, what coverage asks for, the
server's fit and the board's own (:mod:`strategies.own_plan`). So the plans of round 1 are those
that a run with the same seed writes into its audit log. Of later rounds it knows what boards can
do, and what they could do in the round before, which is what the server plans with: each board is
taken to have answered then. It knows nothing of what the policy will have seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from device_profiles.board import Board
from device_profiles.fleet import Fleet
from device_profiles.simulated import simulated_capacity
from fedfreeze.capacity import Capacity
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layout
from fedfreeze.messages import SIMULATED
from fedfreeze.plan import Plan
from strategies.bounds import Limits, Load, board_for
from strategies.clients import ASSUMED_ENVELOPE_BYTES
from strategies.coverage import Coverage, Wanted, covering, untrainable
from strategies.envelope import EnvelopeBound
from strategies.freeze import policy_for
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundView
from strategies.means import Means
from strategies.order_bytes import OrderBytes
from strategies.orders import limits
from strategies.outcome import Planned, Refusal, outcome_of
from strategies.outlook import Outlook
from strategies.planner import feasible, fit
from strategies.schedule import learning_rate
from strategies.schema import Strategy
from strategies.selection import Offer, Prediction, selector_for
from strategies.selection.work import work_of

__all__ = ["Forecast", "Planned", "Prospect", "Refusal", "device_id_of", "forecast"]


@dataclass(frozen=True)
class Prospect:
    """One board in the round.

    Attributes:
        board: its profile, with the fleet's own link.
        is_asked: whether the round's selection takes it; ``outcome`` is what it would do if so.
        covers: layers that coverage asks it to train first.
        load: what the server plans with.
        advice: of the policy and of coverage.
        outcome: what it would do, or why it cannot.
    """

    device_id: str
    board: Board
    capacity: Capacity
    is_asked: bool
    covers: tuple[str, ...]
    load: Load
    advice: Advice
    outcome: Planned | Refusal


@dataclass(frozen=True)
class Forecast:
    """A round.

    Attributes:
        limits: of every client.
        prospects: in device-id order.
        predictions: by device id, what selection goes by; none where the rule reads none.
        untrainable: by layer that no board can train alone, the limit that the last one lacks.
    """

    number: int
    layout: Layout
    limits: Limits
    prospects: tuple[Prospect, ...]
    untrainable: Mapping[str, str]
    predictions: Mapping[str, Prediction] = field(default_factory=dict)

    @property
    def can_train(self) -> bool:
        """Whether any board that is asked has a plan."""
        return any(p.is_asked and isinstance(p.outcome, Planned) for p in self.prospects)


def device_id_of(index: int) -> str:
    """What a simulated client calls itself.

    >>> device_id_of(7)
    'sim-0007'
    """
    return f"{SIMULATED}{index:04d}"


def forecast(
    settings: Strategy, layout: Layout, fleet: Fleet, examples: Sequence[int], *, number: int = 1
) -> Forecast:
    """What a round would be if every board of the fleet were there.

    Args:
        settings: of the run.
        layout: of its model, with costs.
        fleet: whose boards the clients stand for.
        examples: that each client holds; as many as there are clients.
        number: of the round.

    Raises:
        ConfigError: the strategy leaves no room for a packet, or wishes for layers there are not.
    """
    return _Round(settings, layout, fleet, examples, number).play()


class _Round:
    def __init__(
        self,
        settings: Strategy,
        layout: Layout,
        fleet: Fleet,
        examples: Sequence[int],
        number: int,
    ) -> None:
        self._settings = settings
        self._layout = layout
        self._limits = limits(
            layout, settings.clients, settings.compression, settings.local, settings.limits
        )
        self._number = number
        rate = learning_rate(settings.local, number, settings.rounds)
        self._view = RoundView(number, settings.rounds, rate, settings.seed)
        self._policy: FreezePolicy = policy_for(settings.freeze, layout)
        clients = len(examples)
        ids = [device_id_of(index) for index in range(clients)]
        self._boards = {i: fleet.board(index, clients) for index, i in enumerate(ids)}
        self._capacities = self._capacities_in(number)
        # The server plans with what the last reply said.
        self._known = self._capacities_in(number - 1) if number > 1 else self._capacities
        before = number - 1 if number > 1 else None
        brought = OrderBytes(settings, layout).of(number, before)
        self._loads = {
            i: Load(count, brought, self._envelope_bytes(i), board_for(self._limits, board.name))
            for (i, board), count in zip(self._boards.items(), examples, strict=True)
        }

    def _envelope_bytes(self, device_id: str) -> int:
        """What the server leaves room for; from the first reply on, whatever a reply may weigh."""
        if self._number == 1:
            return ASSUMED_ENVELOPE_BYTES
        bound = EnvelopeBound(self._settings, self._layout, device_id)
        return bound.most_bytes(self._layout.names, self._limits.full_upload_bytes)

    def _capacities_in(self, number: int) -> dict[str, Capacity]:
        seed = self._settings.seed
        return {
            i: simulated_capacity(board, seed=seed, device_id=i, round_number=number)
            for i, board in self._boards.items()
        }

    def play(self) -> Forecast:
        ids = sorted(self._boards)
        selector = selector_for(self._settings.clients, self._settings.seed)
        predictions = self._predictions() if selector.reads_predictions else {}
        asked = selector.cohort(Offer(self._number, tuple(ids), predictions)).cohort
        covers = self._covers(asked)
        return Forecast(
            number=self._number,
            layout=self._layout,
            limits=self._limits,
            prospects=tuple(self._prospect(i, i in asked, covers.get(i, ())) for i in ids),
            untrainable=untrainable(
                self._layout, self._limits, ((self._known[i], self._loads[i]) for i in ids)
            ),
            predictions=predictions,
        )

    def _predictions(self) -> dict[str, Prediction]:
        found = {}
        for device_id in self._boards:
            with suppress(PlanError):
                plan = self._fitted(device_id, self._advice(device_id))
                if plan.cost is not None:
                    work = work_of(plan, self._layout, self._loads[device_id].examples)
                    found[device_id] = Prediction(plan.cost.modelled_total_s, work)
        return found

    def _fitted(self, device_id: str, advice: Advice) -> Plan:
        """As the server plans."""
        return fit(
            advice,
            layout=self._layout,
            capacity=self._known[device_id],
            limits=self._limits,
            load=self._loads[device_id],
        )

    def _covers(self, asked: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        rules = self._settings.clients
        coverage = Coverage(
            self._layout, self._limits, q_min=rules.q_min, rounds=rules.coverage_rounds
        )
        if not coverage.is_on:
            return {}
        wanted = {i: Wanted(self._known[i], self._advice(i), self._loads[i]) for i in asked}
        return coverage.cover(self._number, wanted).asked

    def _advice(self, device_id: str) -> Advice:
        capacity = self._known[device_id]
        load = self._loads[device_id]
        able = feasible(self._layout, capacity, self._limits)
        outlook = Outlook(Means(self._layout, capacity, self._limits, load))
        client = ClientView(device_id, capacity, load.examples, able, outlook)
        return self._policy.advise(self._view, client)

    def _prospect(self, device_id: str, is_asked: bool, covers: tuple[str, ...]) -> Prospect:
        advice = covering(self._advice(device_id), covers)
        return Prospect(
            device_id=device_id,
            board=self._boards[device_id],
            capacity=self._capacities[device_id],
            is_asked=is_asked,
            covers=covers,
            load=self._loads[device_id],
            advice=advice,
            outcome=outcome_of(
                self._settings,
                self._layout,
                self._limits,
                device_id=device_id,
                board=self._boards[device_id],
                advice=advice,
                known=self._known[device_id],
                capacity=self._capacities[device_id],
                load=self._loads[device_id],
            ),
        )
