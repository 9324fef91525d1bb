"""``resource``: boards that deliver the most training per second, as far as they can be relied on.

    score = reliability * work / seconds

``seconds`` are those of the round that the client would be asked for (download, training and upload
with the plan that it would get), ``work`` the parameters that train in it, each counted once for
every example, and ``reliability`` how often its orders ended in a merged update. A client on which
no plan fits the deadline has no score. The idea is FedCS's (Nishio and Yonetani, ICC 2019), which
fills a deadline with as many clients as it holds; here the size of the cohort is given, and what
they deliver is not the same.
"""

from __future__ import annotations

from strategies.selection.rule import Offer
from strategies.selection.scored import Scored, Scores

# Nobody is faster; a board that says so gets no better score for it.
LEAST_S = 1e-3


class Resource(Scored):
    """Scores by what boards and links can do."""

    name = "resource"
    reads_predictions = True

    def scores(self, offer: Offer) -> Scores:
        """In parameters times examples per second."""
        return Scores(
            {
                i: self._of(i).reliability * prediction.work / max(LEAST_S, prediction.modelled_s)
                for i, prediction in offer.predictions.items()
            },
            {},
        )
