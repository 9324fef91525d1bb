"""Freeze policies, by the name that the strategy TOML gives them.

To add one: write its file here and add its line to :data:`POLICIES`.
"""

from __future__ import annotations

from typing import Any

from fedfreeze.layout import Layout
from strategies.freeze.cocofl import CoCoFL
from strategies.freeze.deadline import Deadline
from strategies.freeze.fedbug import FedBug
from strategies.freeze.fedfreeze import FedFreeze
from strategies.freeze.fedfrozen import FedFrozen
from strategies.freeze.fedpart import FedPart
from strategies.freeze.fixed import Fixed
from strategies.freeze.full import Full
from strategies.freeze.policy import Advice, FreezePolicy
from strategies.freeze.random import Random
from strategies.freeze.top_down import TopDown

_ALL: tuple[type[FreezePolicy], ...] = (
    Full,
    FedFreeze,
    FedBug,
    FedFrozen,
    TopDown,
    FedPart,
    Fixed,
    Random,
    Deadline,
    CoCoFL,
)
POLICIES: dict[str, type[FreezePolicy]] = {policy.name: policy for policy in _ALL}


def policy_for(table: Any, layout: Layout) -> FreezePolicy:
    """The policy that a checked ``[freeze]`` table names."""
    return POLICIES[table.policy](table, layout)


__all__ = ["POLICIES", "Advice", "FreezePolicy", "policy_for"]
