"""``gain``: clients whose merged updates brought the most, by a moving average that fades with age.

What a merged update brought is the collaborative gain g of
:mod:`strategies.aggregation.alignment`, a number from -2 to 2; an order that ended in no update
brought 0. As in CGSV (Xu et al., NeurIPS 2021, equation 2) it is averaged over rounds,

    G_i <- k G_i + (1 - k) g_i

with k = 0.5, since a client is asked only now and then; the first g is the first G. What was seen
long ago says less of now, so it fades towards the mean of all clients that are known:

    score_i = mean(G) + (G_i - mean(G)) * 0.95 ** (rounds since G_i was seen)

FedFreeze's text (5.4) names the moving average for layers; its scheduling by "estimated gain" (2.2)
gives no formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from strategies.selection.attendance import USED, VOID
from strategies.selection.rule import Offer, Record, Seats
from strategies.selection.scored import Scored, Scores

KEEP = 0.5
FADE = 0.95


class Gain(Scored):
    """Scores by what updates brought."""

    name = "gain"
    reads_gains = True

    def __init__(self, seats: Seats) -> None:
        super().__init__(seats)
        # By device id: the average, and the round in which it was last renewed.
        self._seen: dict[str, tuple[float, int]] = {}

    def scores(self, offer: Offer) -> Scores:
        """Of those with a merged update."""
        if not self._seen:
            return Scores({}, {})
        mean = sum(gain for _, (gain, _) in sorted(self._seen.items())) / len(self._seen)
        of = {}
        for device_id in offer.candidates:
            if device_id in self._seen:
                gain, number = self._seen[device_id]
                of[device_id] = mean + (gain - mean) * FADE ** (offer.number - 1 - number)
        return Scores(of, {"mean_gain": mean})

    def learn(self, number: int, records: Iterable[Record]) -> None:
        """Average the gains of a round in."""
        for record in records:
            device_id, status = record["device_id"], record["status"]
            before = self._seen.get(device_id)
            gain = record.get("collaborative_gain") if status == USED else 0.0
            if gain is None or status == VOID or (status != USED and before is None):
                continue  # nothing is known of it, and unknown is not 0
            average = gain if before is None else KEEP * before[0] + (1 - KEEP) * gain
            self._seen[device_id] = (average, number)

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold."""
        seen = {device_id: list(pair) for device_id, pair in sorted(self._seen.items())}
        return {**super().state(), "seen": seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back :meth:`state`."""
        super().restore(state)
        self._seen = {i: (float(gain), int(number)) for i, (gain, number) in state["seen"].items()}
