"""``uniform``: ``ceil(share * n)`` clients, every set of that size equally likely."""

from __future__ import annotations

from strategies.selection.rule import Chosen, Offer, Rule


class Uniform(Rule):
    """Draws a cohort of a fixed size."""

    name = "uniform"

    def cohort(self, offer: Offer) -> Chosen:
        """In device-id order."""
        ids = sorted(offer.candidates)
        if not ids:
            return Chosen(offer, ())
        generator = self.draws(offer.number).generator("uniform")
        picked = generator.choice(len(ids), size=self.seats.size(len(ids)), replace=False)
        return Chosen(offer, tuple(ids[i] for i in sorted(picked)))
