"""``oort``: clients with much to learn from that are fast enough (Lai et al., OSDI 2021).

Algorithm 1 of the paper: with ``U_i = |B_i| sqrt(mean of squared losses over B_i)`` as it was when
the update of client i was last merged, in round L_i, and D_i the seconds of its round,

    score_i = (U_i + sqrt(0.1 ln R / L_i)) * (T / D_i) ** 2   where T < D_i
    score_i =  U_i + sqrt(0.1 ln R / L_i)                     elsewhere

in round R. U is clipped at its 95th percentile; those that score at least 0.95 of the last one that
would be in are drawn from in proportion to their scores; the share for clients that were never
asked falls from 0.9 by 0.98 a round; T is :mod:`strategies.selection.pacer`'s.

Where this differs from the paper:

- U is brought to 0 ... 1 over the candidates, as in the authors' code: otherwise the second term
  would be nothing beside it. All equal gives 0.5.
- the 95th percentile is the largest value that is not above it, so that of two clients and more
  nobody's own claim is its limit; losses are those of the last epoch, examples those that trained;
- D is predicted for the round that would be asked for, not remembered; T is a percentile of the
  candidates' D, as in the authors' code, and there is no first T to be set;
- the score is multiplied by the client's reliability, where the paper keeps out clients that were
  picked too often: here a floor promises that everybody is asked;
- where nobody is new, a fixed share still explores, of those that have waited.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from strategies.freeze.scores import normalised
from strategies.selection.attendance import USED
from strategies.selection.draws import Draws
from strategies.selection.pacer import Pacer
from strategies.selection.rule import Offer, Record, Seats
from strategies.selection.scored import Scored, Scores, share_of

CLIP = 0.95
CUT_OFF = 0.95
FIRST_EXPLORATION, EXPLORATION_DECAY = 0.9, 0.98
# Whatever a client claims, sums of utilities stay finite.
MOST_UTILITY = 1e100


class Oort(Scored):
    """Scores by statistical and system utility."""

    name = "oort"
    reads_predictions = True
    reads_losses = True

    def __init__(self, seats: Seats) -> None:
        super().__init__(seats)
        # By device id: U, and the round in which it was seen.
        self._seen: dict[str, tuple[float, int]] = {}
        self._pacer = Pacer()

    def exploration(self, number: int) -> float:
        """Share of the cohort for clients that were never asked."""
        decayed = FIRST_EXPLORATION * EXPLORATION_DECAY ** (number - 1)
        return max(self.seats.exploration, float(f"{decayed:.9g}"))

    def scores(self, offer: Offer) -> Scores:
        """Of those with a merged update, as far as a plan fits them."""
        known = {i: self._seen[i] for i in offer.candidates if i in self._seen}
        durations_s = {i: prediction.modelled_s for i, prediction in offer.predictions.items()}
        preferred_s = self._pacer.preferred_s(durations_s.values())
        utilities = normalised(clipped({i: utility for i, (utility, _) in known.items()}))
        of = {}
        for device_id, (_, last) in known.items():
            if device_id not in durations_s:
                continue
            uncertainty = math.sqrt(0.1 * math.log(offer.number) / last)
            system = 1.0
            if preferred_s is not None and preferred_s < durations_s[device_id]:
                system = (preferred_s / durations_s[device_id]) ** 2
            statistical = utilities[device_id] + uncertainty
            of[device_id] = statistical * system * self._of(device_id).reliability
        return Scores(of, {} if preferred_s is None else {"preferred_s": preferred_s})

    def best(self, scores: Mapping[str, float], count: int, draws: Draws) -> list[str]:
        """A draw among the best and those that are about as good."""
        order = super().best(scores, len(scores), draws)
        if count < 1 or not order:
            return []
        least = CUT_OFF * scores[order[min(count, len(order)) - 1]]
        highest = scores[order[0]]
        admitted = {i: share_of(scores[i], highest) for i in order if scores[i] >= least}
        return draws.weighted(admitted, count, "best")

    def learn(self, number: int, records: Iterable[Record]) -> None:
        """Take over the utilities of a round, and pace."""
        merged = []
        for record in records:
            loss = record.get("train_loss_rms")
            if record["status"] == USED and loss is not None:
                utility = min(record["examples"] * loss, MOST_UTILITY)
                self._seen[record["device_id"]] = (utility, number)
                merged.append(record["device_id"])
        bounded = clipped({i: utility for i, (utility, _) in self._seen.items()})
        self._pacer = self._pacer.after(math.fsum(bounded[i] for i in merged))

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold."""
        seen = {device_id: list(pair) for device_id, pair in sorted(self._seen.items())}
        return {**super().state(), "seen": seen, "pacer": asdict(self._pacer)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back :meth:`state`."""
        super().restore(state)
        self._seen = {i: (float(of), int(number)) for i, (of, number) in state["seen"].items()}
        pacer = state["pacer"]
        self._pacer = Pacer(pacer["percent"], pacer["rounds"], tuple(pacer["utilities"]))


def clipped(utilities: Mapping[str, float]) -> dict[str, float]:
    """At most the largest one that is not above the 95th percentile.

    >>> clipped({"a": 1.0, "b": 3.0, "c": 1e30})
    {'a': 1.0, 'b': 3.0, 'c': 3.0}
    """
    if not utilities:
        return {}
    ordered = sorted(utilities.values())
    most = ordered[int(CLIP * (len(ordered) - 1))]
    return {device_id: min(utility, most) for device_id, utility in utilities.items()}
