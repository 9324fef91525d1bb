"""``bernoulli``: each client's own coin with probability ``share``.

The coins are thrown again while nobody is in. A coin depends on the client's id, not on who
else is there.
"""

from __future__ import annotations

from strategies.selection.rule import Chosen, Offer, Rule


class Bernoulli(Rule):
    """Throws a coin for each client."""

    name = "bernoulli"

    def cohort(self, offer: Offer) -> Chosen:
        """In device-id order."""
        ids, draws, throw = sorted(offer.candidates), self.draws(offer.number), 0
        while ids:
            chosen = tuple(
                i for i in ids if draws.generator(f"coin {throw} {i}").random() < self.seats.share
            )
            if chosen:
                return Chosen(offer, chosen)
            throw += 1
        return Chosen(offer, ())
