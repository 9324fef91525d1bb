"""What happened in one round: for the log, the audit and the screen."""

from __future__ import annotations

from dataclasses import dataclass, field

from flwr.app import MetricRecord

from fedfreeze.capacity import Capacity
from fedfreeze.layout import Layout
from strategies.attendance import Closing, Opening
from strategies.coverage import Covered
from strategies.orders import Asked
from strategies.replies import Answer
from strategies.selection.rule import Chosen


@dataclass
class RoundResult:
    """One round, filled in as it goes.

    Attributes:
        capacities: by device id, what each client of the cohort was planned with.
        reply_bytes: by device id, of its last reply, whatever it said, as handed to Flower.
        used: device ids whose update was merged, in device-id order.
        failed: why, by device id, for clients whose reply was missing or refused.
        sat_out: why, by device id, for clients on which no plan fits.
        residual_ratios: by device id, norm of what is left to send over that of what training moved
            in this round; infinite where it moved nothing.
        residual_warnings: by device id, that the ratio has been too large for too long.
        late: device ids whose update came after the simulated deadline.
        void: the quorum was missed; the model is as before.
        simulated_s: modelled length of the round.
        covered: what the coverage of the fleet asks for; None where nobody is asked.
        untrainable: by layer that no board that is online can train, a limit that is short.
        away: why, by device id, for simulated boards that were not there when the round began.
        simulated_wait_s: seconds in which nobody was there, before the round.
        awaited_s: when somebody who is away may come; None where nobody does.
        lost: why, by device id, for boards that left before their update had arrived.
        arrival_s: by device id, when an update arrived or would have, in simulated seconds since
            the run began.
        modelled_energy_j: by device id, what each simulated board that was asked drew.
        battery_j: by device id, what is left in the batteries of those that have one.
        selection: who was there and how the cohort was chosen; None for a rule without reasons.
        gains: by device id, what merged updates brought, where the rule reads it.
    """

    number: int
    capacities: dict[str, Capacity] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    reply_bytes: dict[str, int] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    used: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    sat_out: dict[str, str] = field(default_factory=dict)
    residual_ratios: dict[str, float] = field(default_factory=dict)
    residual_warnings: dict[str, str] = field(default_factory=dict)
    late: tuple[str, ...] = ()
    void: bool = False
    simulated_s: float = 0.0
    covered: Covered | None = None
    untrainable: dict[str, str] = field(default_factory=dict)
    away: dict[str, str] = field(default_factory=dict)
    simulated_wait_s: float = 0.0
    awaited_s: float | None = None
    lost: dict[str, str] = field(default_factory=dict)
    arrival_s: dict[str, float] = field(default_factory=dict)
    modelled_energy_j: dict[str, float] = field(default_factory=dict)
    battery_j: dict[str, float] = field(default_factory=dict)
    selection: Chosen | None = None
    gains: dict[str, float] = field(default_factory=dict)

    def begins(self, opening: Opening) -> None:
        """Note who is there."""
        self.away = dict(opening.away)
        self.simulated_wait_s = opening.wait_s
        self.awaited_s = opening.awaited_s

    def ends(self, closing: Closing) -> None:
        """Note what arrived when, and what those who were asked drew."""
        self.simulated_s = closing.round_s
        self.late = closing.late
        self.lost = dict(closing.lost)
        self.arrival_s = dict(closing.arrival_s)
        self.modelled_energy_j = {i: j for i, j in closing.energy_j.items() if i in self.asked}
        self.battery_j = {i: j for i, j in closing.battery_j.items() if i in self.asked}

    @property
    def expected(self) -> int:
        """How many updates the server waits for: of those asked, less who sat out."""
        return len(self.asked) - len(set(self.sat_out) & set(self.asked))

    def status(self, device_id: str) -> str:
        """What became of a client that was asked; ``void`` if only the quorum was missing."""
        for status, members in (
            ("used", self.used),
            ("late", self.late),
            ("lost", self.lost),
            ("sat-out", self.sat_out),
            ("failed", self.failed),
        ):
            if device_id in members:
                return status
        return "void"

    def asked_to_cover(self, device_id: str) -> tuple[str, ...]:
        """Layers that coverage asks of a client."""
        return () if self.covered is None else self.covered.asked.get(device_id, ())

    @property
    def upload_bytes(self) -> int:
        """Of every reply that arrived, packets and envelopes, as handed to Flower."""
        return sum(self.reply_bytes.values())

    @property
    def upload_packet_bytes(self) -> int:
        """Of the packets alone."""
        return sum(answer.packet_bytes for answer in self.answers.values())

    @property
    def download_bytes(self) -> int:
        """Of every order, as handed to Flower."""
        return sum(asked.download_bytes for asked in self.asked.values())

    def frozen_share(self, layout: Layout) -> float | None:
        """Share of the parameters that a used client froze, on average; None if none was used."""
        shares = [
            1
            - sum(layout[name].parameter_count for name in self.answers[i].plan.trained)
            / layout.parameter_count
            for i in self.used
        ]
        return sum(shares) / len(shares) if shares else None

    def train_loss(self) -> float | None:
        """Local training loss, weighted by examples; None if nobody was used."""
        weights = {i: self.answers[i].report.examples for i in self.used}
        if not weights:
            return None
        summed = sum(self.answers[i].report.train_loss * n for i, n in weights.items())
        return summed / sum(weights.values())

    def residual_norm(self) -> float | None:
        """Norm of what a used client has left to send, on average; None if none was used."""
        norms = [self.answers[i].report.residual_norm for i in self.used]
        return sum(norms) / len(norms) if norms else None

    def residual_ratio(self) -> float | None:
        """The largest ratio of a used client; None if nobody's is known."""
        known = [self.residual_ratios[i] for i in self.used if i in self.residual_ratios]
        return max(known, default=None)

    def metrics(self, layout: Layout) -> MetricRecord:
        """The round's figures, as Flower's ``start()`` collects them."""
        metrics = MetricRecord(
            {
                "clients-used": len(self.used),
                "clients-failed": len(self.failed),
                "upload-bytes": self.upload_bytes,
            }
        )
        if (share := self.frozen_share(layout)) is not None:
            metrics["frozen-share"] = share
        if (loss := self.train_loss()) is not None:
            metrics["train-loss"] = loss
        return metrics
