"""What a whole run would cost, every round of it planned as one that was forecast.

What it assumes stands in :data:`ASSUMPTIONS`, for whoever prints it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

from device_profiles.clock import VirtualClock
from device_profiles.cost import modelled_energy_j
from device_profiles.fleet import Fleet
from fedfreeze.errors import FleetError
from fedfreeze.plan import PlanCost
from strategies.attendance import Attendance
from strategies.forecast import Forecast, Planned, Prospect, Refusal
from strategies.merging import MOST_VOID_ROUNDS, Quorum
from strategies.order_bytes import OrderBytes
from strategies.outcome import outcome_of
from strategies.schema import Strategy
from strategies.selection import Offer, selector_for
from strategies.selection.log import selection_record
from strategies.selection.rule import Chosen

ASSUMPTIONS = (
    "in every round boards train as in the one above, with what they can do in that one",
    "where a longer way down leaves too little time or energy, they train as far as it does",
    "policy and selection have seen nothing of what boards would have sent",
    "packets are as large as their budget, and the way down brings all that can have changed",
    "boards come and go as the fleet says, and idle, there or away, until the run ends",
)

_TOO_FEW = (
    f"round {{number}}: too few updates would arrive in time, for the {MOST_VOID_ROUNDS}rd round "
    "in a row; lower clients.quorum, or give boards longer windows and fuller batteries in the "
    "fleet"
)


@dataclass(frozen=True)
class BoardTotals:
    """One board over the run.

    Attributes:
        rounds: in which it trains.
        rounds_lost: of these, in which it leaves before its update has arrived.
        rounds_away: in which it is not there, or its battery is empty.
        busy_s: of transfers and training.
        energy_j: of its work, and of idling until the run ends.
    """

    device_id: str
    profile: str
    rounds: int
    rounds_lost: int
    rounds_away: int
    busy_s: float
    upload_bytes: int
    download_bytes: int
    energy_j: float


@dataclass(frozen=True)
class RunForecast:
    """A run.

    Attributes:
        rounds: that it gets to.
        simulated_s: on the virtual clock.
        boards: in device-id order.
        end: why it ends before its last round; None where it does not.
    """

    rounds: int
    simulated_s: float
    boards: tuple[BoardTotals, ...]
    end: str | None = None

    @property
    def upload_bytes(self) -> int:
        """Of all boards."""
        return sum(board.upload_bytes for board in self.boards)

    @property
    def download_bytes(self) -> int:
        """Of all boards."""
        return sum(board.download_bytes for board in self.boards)

    @property
    def energy_j(self) -> float:
        """Of all boards."""
        return sum(board.energy_j for board in self.boards)


def run_forecast(
    settings: Strategy, fleet: Fleet, planned: Forecast, *, rounds: int
) -> RunForecast:
    """The run that consists of so many rounds like ``planned``, or ends before they are over."""
    fitted = _Fitted(settings, planned)
    ledgers = {p.device_id: _Ledger(p, fitted) for p in planned.prospects}
    profiles = {prospect.device_id: prospect.board.name for prospect in planned.prospects}
    attendance = Attendance(fleet, seed=settings.seed, deadline_s=planned.limits.deadline_s)
    quorum = Quorum(settings.clients.quorum)
    orders = OrderBytes(settings, planned.layout)
    selector = selector_for(settings.clients, settings.seed)
    clock = VirtualClock()
    end, number = None, 0
    while number < rounds and end is None:
        try:
            opening = attendance.open_round(number + 1, profiles, len(profiles), clock)
        except FleetError as error:
            end = str(error)
            break
        number += 1
        chosen = selector.cohort(_offer(planned, opening.away, number))
        costs = {
            device_id: cost
            for device_id in chosen.cohort
            if (cost := ledgers[device_id].train(number, orders)) is not None
        }
        closing = attendance.close_round(
            costs, clock, asked=chosen.cohort, awaited_s=None if costs else opening.awaited_s
        )
        missing = {*closing.lost, *closing.late}
        for device_id, ledger in ledgers.items():
            ledger.rounds_away += device_id in opening.away
            ledger.energy_j += opening.energy_j[device_id] + closing.energy_j[device_id]
            ledger.rounds_lost += device_id in missing
        is_met = quorum.is_met(
            len(costs) - len(missing), len(costs), others_come=opening.awaited_s is not None
        )
        if chosen.rule is not None:
            status = {
                i: _status(i, costs, missing, is_void=not is_met) for i in sorted(chosen.cohort)
            }
            selector.observe(_records(number, chosen, ledgers, status))
        if quorum.is_over:
            end = _TOO_FEW.format(number=number)
    boards = tuple(ledger.totals() for ledger in ledgers.values())
    return RunForecast(number, clock.now_s, boards, end)


def _offer(planned: Forecast, away: Container[str], number: int) -> Offer:
    there = tuple(p.device_id for p in planned.prospects if p.device_id not in away)
    return Offer(number, there, {i: of for i, of in planned.predictions.items() if i in there})


def _records(
    number: int, chosen: Chosen, ledgers: Mapping[str, _Ledger], status: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What a rule may read of a round; nobody knows what updates would have brought."""
    replies = [
        {
            "round": number,
            "device_id": device_id,
            "status": of,
            "examples": ledgers[device_id].prospect.load.examples,
        }
        for device_id, of in status.items()
    ]
    return [selection_record(chosen), *replies]


def _status(
    device_id: str, trained: Container[str], missing: Container[str], *, is_void: bool
) -> str:
    if device_id not in trained:
        return "sat-out"
    if device_id in missing:
        return "lost"
    return "void" if is_void else "used"


class _Fitted:
    """What boards make of rounds whose orders weigh another amount than in the one planned."""

    def __init__(self, settings: Strategy, planned: Forecast) -> None:
        self._settings = settings
        self._planned = planned
        self._again: dict[tuple[str, int], Planned | Refusal] = {}

    def outcome(self, prospect: Prospect, order_bytes: int) -> Planned | Refusal:
        """The plan as it is while its time and joules are enough; else one that is fitted again."""
        outcome = prospect.outcome
        if isinstance(outcome, Refusal):
            return outcome
        if order_bytes == prospect.load.download_bytes:
            return outcome
        download_s = order_bytes / prospect.capacity.downlink_bytes_per_s.value
        cost = replace(outcome.cost, modelled_download_s=download_s)
        joules = modelled_energy_j(prospect.board, cost, cost.modelled_total_s)
        limits = self._planned.limits
        is_in_time = cost.modelled_total_s <= limits.deadline_s
        if is_in_time and joules <= (limits.energy_j_per_round or math.inf):
            return replace(outcome, cost=replace(cost, modelled_energy_j=joules))
        key = (prospect.device_id, order_bytes)
        if key not in self._again:
            self._again[key] = self._fit(prospect, order_bytes)
        return self._again[key]

    def _fit(self, prospect: Prospect, order_bytes: int) -> Planned | Refusal:
        return outcome_of(
            self._settings,
            self._planned.layout,
            self._planned.limits,
            device_id=prospect.device_id,
            board=prospect.board,
            advice=prospect.advice,
            known=prospect.capacity,
            capacity=prospect.capacity,
            load=replace(prospect.load, download_bytes=order_bytes),
        )


class _Ledger:
    """One board's sums."""

    def __init__(self, prospect: Prospect, fitted: _Fitted) -> None:
        self.prospect = prospect
        self.device_id = prospect.device_id
        self.rounds_away = 0
        self.rounds_lost = 0
        self.energy_j = 0.0
        self._fitted = fitted
        self._rounds = 0
        self._before: int | None = None
        self._upload_bytes = 0
        self._download_bytes = 0
        self._busy_s = 0.0

    def train(self, number: int, orders: OrderBytes) -> PlanCost | None:
        """Take part in a round; None where the board sits out."""
        order_bytes = orders.of(number, self._before)
        outcome = self._fitted.outcome(self.prospect, order_bytes)
        if isinstance(outcome, Refusal):
            return None
        self._rounds += 1
        self._before = number
        self._upload_bytes += outcome.upload_bytes
        self._download_bytes += order_bytes
        self._busy_s += outcome.cost.modelled_total_s
        return outcome.cost

    def totals(self) -> BoardTotals:
        return BoardTotals(
            device_id=self.device_id,
            profile=self.prospect.board.name,
            rounds=self._rounds,
            rounds_lost=self.rounds_lost,
            rounds_away=self.rounds_away,
            busy_s=self._busy_s,
            upload_bytes=self._upload_bytes,
            download_bytes=self._download_bytes,
            energy_j=self.energy_j,
        )
