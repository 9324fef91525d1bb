"""Freeze policies, by the name that the strategy TOML gives them.

To add one: write its file here and add its line to :data:`POLICIES`.
"""

from __future__ import annotations

from typing import Any

from fedfreeze.layout import Layout
from strategies.freeze.fedfreeze import FedFreeze
from strategies.freeze.full import Full
from strategies.freeze.policy import Advice, FreezePolicy

POLICIES: dict[str, type[FreezePolicy]] = {policy.name: policy for policy in (Full, FedFreeze)}


def policy_for(table: Any, layout: Layout) -> FreezePolicy:
    """The policy that a checked ``[freeze]`` table names."""
    return POLICIES[table.policy](table, layout)


__all__ = ["POLICIES", "Advice", "FreezePolicy", "policy_for"]
