"""Rules that choose the cohort of a round, by the name that the strategy TOML gives them.

To add one: write its file here, add its line to :data:`RULES`, and its name to
:class:`strategies.tables.Clients`.
"""

from __future__ import annotations

from strategies.selection.bernoulli import Bernoulli
from strategies.selection.everybody import Everybody
from strategies.selection.gain import Gain
from strategies.selection.oort import Oort
from strategies.selection.resource import Resource
from strategies.selection.rule import Chosen, Offer, Prediction, Rule, Seats
from strategies.selection.uniform import Uniform
from strategies.tables import Clients

RULES: dict[str, type[Rule]] = {
    rule.name: rule for rule in (Everybody, Uniform, Bernoulli, Resource, Gain, Oort)
}


def selector_for(table: Clients, seed: int) -> Rule:
    """The rule that a checked ``[clients]`` table names."""
    seats = Seats(table.share, table.exploration, table.fairness_rounds, seed)
    return RULES[table.selection](seats)


__all__ = ["RULES", "Chosen", "Offer", "Prediction", "Rule", "Seats", "selector_for"]
