"""``all``: everybody who is there."""

from __future__ import annotations

from strategies.selection.rule import Chosen, Offer, Rule


class Everybody(Rule):
    """Asks everybody."""

    name = "all"

    def cohort(self, offer: Offer) -> Chosen:
        """In device-id order."""
        return Chosen(offer, tuple(sorted(offer.candidates)))
