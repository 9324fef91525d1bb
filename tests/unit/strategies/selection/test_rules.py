from typing import get_args

from strategies.selection import RULES, selector_for
from strategies.selection.scored import Scored
from strategies.tables import SCORED, Clients


def test_the_strategy_toml_knows_every_rule_and_no_other():
    assert get_args(Clients.model_fields["selection"].annotation) == tuple(RULES)


def test_the_keys_of_rules_that_score_are_read_by_those_that_do():
    assert tuple(name for name, rule in RULES.items() if issubclass(rule, Scored)) == SCORED


def test_a_table_becomes_a_rule():
    table = Clients(selection="oort", share=0.5, exploration=0.1, fairness_rounds=7)
    rule = selector_for(table, seed=3)
    assert rule.name == "oort"
    assert (rule.seats.share, rule.seats.exploration) == (0.5, 0.1)
    assert (rule.seats.fairness_rounds, rule.seats.seed) == (7, 3)
