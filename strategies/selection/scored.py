"""What the rules that score have in common: a cohort of floor, explorers and the best.

Of the ``size`` seats of a round,

1. the floor takes those that must be asked now so that nobody waits longer than
   ``fairness_rounds`` rounds in which it is there (:mod:`strategies.selection.floor`);
2. ``exploration * size`` are for clients that were never asked, in proportion to their predicted
   speed, and where those are too few for clients that were, in proportion to the rounds that they
   have waited. Where that is no whole number, it is so on average;
3. the best scores take what is left. While too few clients have a score, others sit in for them, as
   explorers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from strategies.selection.attendance import NEVER, Attendance, after, from_json, to_json
from strategies.selection.draws import Draws
from strategies.selection.floor import due, window
from strategies.selection.rule import Chosen, Offer, Record, Rule, Seats, Why

# Weights of a draw are whole numbers up to this.
FINEST = 2**20


@dataclass(frozen=True)
class Scores:
    """What the clients are worth, as far as that is known.

    Attributes:
        of: by device id, of candidates; finite.
        figures: what else they rest on, for the audit log.
    """

    of: Mapping[str, float]
    figures: Mapping[str, float]


class Scored(Rule):
    """Base of the rules that score."""

    def __init__(self, seats: Seats) -> None:
        super().__init__(seats)
        self.attendance: dict[str, Attendance] = {}

    @abstractmethod
    def scores(self, offer: Offer) -> Scores:
        """The worth of each candidate that something is known of."""

    def exploration(self, number: int) -> float:
        """Share of the cohort for clients that were never asked."""
        del number
        return self.seats.exploration

    def best(self, scores: Mapping[str, float], count: int, draws: Draws) -> list[str]:
        """So many of these clients; ties are drawn."""
        order = draws.shuffled(scores, "ties")
        return sorted(order, key=lambda i: -scores[i])[:count]

    def learn(self, number: int, records: Iterable[Record]) -> None:
        """Learn from the records of the clients that were asked in a round."""

    # ---- the rule

    def cohort(self, offer: Offer) -> Chosen:
        """See the module."""
        candidates = sorted(offer.candidates)
        if not candidates:
            return Chosen(offer, (), rule=self.name)
        size, draws = self.seats.size(len(candidates)), self.draws(offer.number)
        scores = self.scores(offer)
        tidy = {i: float(f"{score:.9g}") for i, score in sorted(scores.of.items())}
        why: dict[str, Why] = dict.fromkeys(self._floor(candidates, size, draws), "floor")
        explorers = self._explorers(offer, size, draws, [i for i in candidates if i not in why])
        why |= dict.fromkeys(explorers, "explore")
        known = {i: score for i, score in tidy.items() if i not in why}
        why |= dict.fromkeys(self.best(known, size - len(why), draws), "exploit")
        others = draws.shuffled((i for i in candidates if i not in why), "others")
        others.sort(key=lambda i: (self._of(i).picked > 0, -self._of(i).waited))
        why |= dict.fromkeys(others[: size - len(why)], "explore")
        members = tuple(sorted(why))
        return Chosen(
            offer,
            members,
            rule=self.name,
            why={i: why[i] for i in members},
            scores=tidy,
            figures={"exploration": self.exploration(offer.number), **scores.figures},
        )

    def observe(self, records: Iterable[Record]) -> None:
        """Learn from the records of one round."""
        kept = list(records)
        self.attendance = after(self.attendance, kept)
        asked = [record for record in kept if "selection" not in record]
        if asked:
            self.learn(asked[0]["round"], asked)

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold."""
        return {"attendance": to_json(self.attendance)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back :meth:`state`."""
        self.attendance = from_json(state["attendance"])

    # ---- its parts

    def _of(self, device_id: str) -> Attendance:
        return self.attendance.get(device_id, NEVER)

    def _floor(self, candidates: list[str], size: int, draws: Draws) -> list[str]:
        most = window(self.seats.fairness_rounds, len(candidates), size) - 1
        slacks = {i: most - self._of(i).waited for i in draws.shuffled(candidates, "floor")}
        return sorted(slacks, key=lambda i: slacks[i])[: due(slacks.values(), size)]

    def _explorers(self, offer: Offer, size: int, draws: Draws, left: list[str]) -> list[str]:
        room = size - (len(offer.candidates) - len(left))
        if self.reads_predictions:
            # A board on which no plan fits would only sit out.
            left = [i for i in left if i in offer.predictions]
        new = _speeds(offer, [i for i in left if self._of(i).picked == 0])
        waiting = {i: w for i in left if i not in new and (w := self._of(i).waited) > 0}
        seats = draws.rounded(self.exploration(offer.number) * size, "exploration")
        explorers = draws.weighted(new, min(seats, room), "new")
        seats = draws.rounded(self.seats.exploration * size, "exploration")
        count = max(0, min(seats, room) - len(explorers))
        return explorers + draws.weighted(waiting, count, "waiting")


def _speeds(offer: Offer, device_ids: Iterable[str]) -> dict[str, int]:
    """Weights by how soon a round would end; the same for all where nobody predicts."""
    seconds = {i: prediction.modelled_s for i, prediction in offer.predictions.items()}
    fastest_s = min(seconds.values(), default=0.0)
    return {i: share_of(fastest_s, seconds[i]) if i in seconds else 1 for i in device_ids}


def share_of(part: float, whole: float) -> int:
    """``part / whole`` as a weight of a draw, 1 at least; both are 0 or more.

    >>> share_of(1.0, 4.0), share_of(0.0, 4.0), share_of(0.0, 0.0)
    (262144, 1, 1048576)
    """
    return FINEST if part >= whole else max(1, int(FINEST * (part / whole)))
