"""What a whole run would cost, every round of it planned as one that was forecast.

What it assumes stands in :data:`ASSUMPTIONS`, for whoever prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from device_profiles.cost import modelled_energy_j
from device_profiles.fleet import Fleet
from device_profiles.presence import Presence, available
from strategies.downlink import packet_rule
from strategies.forecast import Forecast, Planned, Prospect
from strategies.model_bytes import blob_bytes
from strategies.orders import ORDER_BYTES
from strategies.schema import Strategy
from strategies.selection import Offer, Rule, selector_for
from strategies.selection.log import selection_record

ASSUMPTIONS = (
    "every round is planned as the one above, with what boards can do in that one",
    "policy and selection have seen nothing of what boards would have sent",
    "packets are as large as their budget, and the way down brings all that can have changed",
    "boards are there as the fleet says; one that waits for others idles, one that is away is off",
)

# Before each packet on the way down stands its length.
_LENGTH_BYTES = 4


@dataclass(frozen=True)
class BoardTotals:
    """One board over the run.

    Attributes:
        rounds: in which it trains.
        rounds_away: in which it is not there, or its battery is empty.
        busy_s: of transfers and training.
        energy_j: of its work, and of idling until each round ends.
    """

    device_id: str
    profile: str
    rounds: int
    rounds_away: int
    busy_s: float
    upload_bytes: int
    download_bytes: int
    energy_j: float


@dataclass(frozen=True)
class RunForecast:
    """A run.

    Attributes:
        simulated_s: on the virtual clock.
        boards: in device-id order.
    """

    rounds: int
    simulated_s: float
    boards: tuple[BoardTotals, ...]

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
    """The run that consists of so many rounds like ``planned``."""
    ledgers = [
        _Ledger(prospect, fleet.presence(index, len(planned.prospects)))
        for index, prospect in enumerate(planned.prospects)
    ]
    down = _Download(settings, planned)
    selector = selector_for(settings.clients, settings.seed)
    now_s = 0.0
    for number in range(1, rounds + 1):
        there = [ledger for ledger in ledgers if ledger.is_there(settings.seed, number, now_s)]
        asked = _asked(selector, planned, there, number)
        training = [x for x in there if x.device_id in asked and x.planned is not None]
        # Nobody could train: the server has waited for the whole round.
        empty_s = planned.limits.deadline_s
        round_s = max((ledger.total_s for ledger in training), default=empty_s)
        for ledger in there:
            if ledger in training:
                ledger.train(round_s, down.bytes_for(ledger.prospect, ledger.last_trained, number))
                ledger.last_trained = number
            else:
                ledger.idle(round_s)
        now_s += round_s
    return RunForecast(rounds, now_s, tuple(ledger.totals(rounds) for ledger in ledgers))


def _asked(
    selector: Rule, planned: Forecast, there: Sequence[_Ledger], number: int
) -> tuple[str, ...]:
    """The cohort of a round, by a rule that knows who was asked and nothing of what they sent."""
    candidates = tuple(ledger.device_id for ledger in there)
    known = {i: of for i, of in planned.predictions.items() if i in candidates}
    chosen = selector.cohort(Offer(number, candidates, known))
    if chosen.rule is not None:
        replies = [
            {
                "round": number,
                "device_id": ledger.device_id,
                "status": "sat-out" if ledger.planned is None else "used",
                "examples": ledger.prospect.load.examples,
            }
            for ledger in there
            if ledger.device_id in chosen.cohort
        ]
        selector.observe([selection_record(chosen), *replies])
    return chosen.cohort


class _Ledger:
    """One board's sums."""

    def __init__(self, prospect: Prospect, presence: Presence) -> None:
        self.prospect = prospect
        self.device_id = prospect.device_id
        outcome = prospect.outcome
        self.planned = outcome if isinstance(outcome, Planned) else None
        self.total_s = 0.0 if self.planned is None else self.planned.cost.modelled_total_s
        self.last_trained: int | None = None
        self._presence = presence
        self._rounds = 0
        self._there = 0
        self._download_bytes = 0
        self._energy_j = 0.0

    def is_there(self, seed: int, number: int, now_s: float) -> bool:
        battery = self._presence.battery
        if battery is not None and self._energy_j >= battery.start_j:
            return False
        here = available(
            self._presence,
            seed=seed,
            device_id=self.device_id,
            round_number=number,
            now_s=now_s,
        )
        self._there += here
        return here

    def train(self, round_s: float, download_bytes: int) -> None:
        assert self.planned is not None, "only boards with a plan train"
        self._rounds += 1
        self._download_bytes += download_bytes
        self._energy_j += modelled_energy_j(self.prospect.board, self.planned.cost, round_s)

    def idle(self, round_s: float) -> None:
        self._energy_j += self.prospect.board.power.idle.value * round_s

    def totals(self, rounds: int) -> BoardTotals:
        upload = 0 if self.planned is None else self.planned.upload_bytes
        return BoardTotals(
            device_id=self.device_id,
            profile=self.prospect.board.name,
            rounds=self._rounds,
            rounds_away=rounds - self._there,
            busy_s=self._rounds * self.total_s,
            upload_bytes=self._rounds * upload,
            download_bytes=self._download_bytes,
            energy_j=self._energy_j,
        )


class _Download:
    """Bytes of an order at their largest."""

    def __init__(self, settings: Strategy, planned: Forecast) -> None:
        self._whole = blob_bytes(planned.layout, planned.layout.names)
        rule = packet_rule(planned.layout, settings.compression)
        self._packet = None if rule is None else rule.budget_bytes + _LENGTH_BYTES

    def bytes_for(self, prospect: Prospect, last_trained: int | None, number: int) -> int:
        """Of the order of a round to a board that was there last in round ``last_trained``."""
        if last_trained is None:
            # It may be late to join: only in round 1 is the model what its own file holds.
            return prospect.load.download_bytes if number == 1 else self._whole + ORDER_BYTES
        if self._packet is None:
            return self._whole + ORDER_BYTES
        return min(self._whole, (number - last_trained) * self._packet) + ORDER_BYTES
