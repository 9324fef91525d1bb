"""What a selection rule is: it chooses the cohort of a round, and may learn from the audit log.

A rule is one class in one file. It is a pure function of the records of ``decisions.jsonl``: two
rules that were shown the same records choose the same cohorts, and nothing else is shown to them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from strategies.selection.draws import Draws

Why = Literal["exploit", "explore", "floor"]
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Seats:
    """How many are asked, and what for.

    Attributes:
        share: of the clients that are there.
        exploration: share of the cohort for clients that were never asked, or long ago.
        fairness_rounds: within which each client that is there is asked at least once.
        seed: of the run.
    """

    share: float
    exploration: float
    fairness_rounds: int
    seed: int

    def size(self, clients: int) -> int:
        """``ceil(share * clients)``, and 1 at least.

        >>> Seats(0.3, 0.2, 20, seed=0).size(10)
        3
        """
        # Rounded first: 0.07 * 100 is a little above 7 in floating point.
        return max(1, math.ceil(round(self.share * clients, 9)))


@dataclass(frozen=True)
class Prediction:
    """What a client's round would be if it were asked.

    Attributes:
        modelled_s: of download, training and upload.
        work: parameters that train, each counted once for every example that it trains on.
    """

    modelled_s: float
    work: float


@dataclass(frozen=True)
class Offer:
    """Who may be asked in a round.

    Attributes:
        number: of the round, from 1.
        candidates: device ids of those that are there.
        predictions: by device id; none for a client on which no plan fits the deadline, and none at
            all for a rule that does not read them.
    """

    number: int
    candidates: tuple[str, ...]
    predictions: Mapping[str, Prediction] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """A cohort and, for a rule that scores, how it came about.

    Attributes:
        cohort: in device-id order.
        rule: name of the rule that has reasons to record; None for one that only draws.
        why: by device id, of the cohort.
        scores: by device id, of candidates whose worth is known.
        figures: what else the rule went by in this round.
    """

    offer: Offer
    cohort: tuple[str, ...]
    rule: str | None = None
    why: Mapping[str, Why] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)


class Rule(ABC):
    """Base of the rules; ``name`` is what the strategy TOML calls it."""

    name: ClassVar[str]
    reads_predictions: ClassVar[bool] = False
    reads_gains: ClassVar[bool] = False
    reads_losses: ClassVar[bool] = False

    def __init__(self, seats: Seats) -> None:
        self.seats = seats

    @abstractmethod
    def cohort(self, offer: Offer) -> Chosen:
        """Who is asked; must not change the rule's state."""

    def observe(self, records: Iterable[Record]) -> None:  # noqa: B027 - most draws do not learn
        """Learn from the records of one round, as ``decisions.jsonl`` holds them."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold, as JSON values."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - as above
        """Take back what :meth:`state` gave."""

    def draws(self, number: int) -> Draws:
        """The draws of one round."""
        return Draws(self.seats.seed, number)
