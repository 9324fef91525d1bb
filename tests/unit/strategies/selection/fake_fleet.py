"""Clients as a selection rule sees them: what they would take, and what came of asking them."""

from __future__ import annotations

from dataclasses import dataclass, field

from strategies.selection import Offer, Prediction, Seats
from strategies.selection.log import selection_record


def seats(share=0.5, exploration=0.2, fairness_rounds=20, seed=0):
    return Seats(share, exploration, fairness_rounds, seed)


def used(device_id, number=1, **fields):
    """The record of a client whose update was merged."""
    return {"round": number, "device_id": device_id, "status": "used", **fields}


def vain(device_id, number=1, status="failed"):
    """The record of a client that was asked for nothing."""
    return {"round": number, "device_id": device_id, "status": status}


def offer(number, modelled_s, work=1.0):
    """Everybody is there; ``modelled_s`` by device id, None where no plan fits."""
    predictions = {
        i: Prediction(seconds, work) for i, seconds in modelled_s.items() if seconds is not None
    }
    return Offer(number, tuple(modelled_s), predictions)


@dataclass
class FakeFleet:
    """What each client would do if asked; of those not named, the same for all.

    Attributes:
        modelled_s: by device id; None where no plan fits.
        gains, losses, examples: by device id, of an update that is merged.
        failing: device ids whose updates never arrive.
    """

    ids: tuple[str, ...]
    modelled_s: dict[str, float | None] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    gains: dict[str, float] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)
    examples: dict[str, int] = field(default_factory=dict)
    failing: frozenset[str] = frozenset()

    def offer(self, number, candidates=None):
        there = self.ids if candidates is None else tuple(candidates)
        predictions = {
            i: Prediction(seconds, self.work.get(i, 100.0))
            for i in there
            if (seconds := self.modelled_s.get(i, 10.0)) is not None
        }
        return Offer(number, there, predictions)

    def records(self, chosen):
        """What the audit log would hold of the round."""
        number = chosen.offer.number
        clients = [self._record(number, device_id) for device_id in chosen.cohort]
        return [selection_record(chosen), *clients]

    def play(self, rule, numbers, candidates=None):
        """These rounds; the cohorts as they were chosen."""
        chosen = []
        for number in numbers:
            chosen.append(rule.cohort(self.offer(number, candidates)))
            rule.observe(self.records(chosen[-1]))
        return chosen

    def _record(self, number, device_id):
        if device_id in self.failing:
            return vain(device_id, number)
        if self.modelled_s.get(device_id, 10.0) is None:
            return vain(device_id, number, "sat-out")
        return used(
            device_id,
            number,
            examples=self.examples.get(device_id, 100),
            train_loss_rms=self.losses.get(device_id, 1.0),
            collaborative_gain=self.gains.get(device_id, 0.5),
        )
