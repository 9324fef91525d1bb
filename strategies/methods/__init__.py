"""Methods, by the name that the strategy TOML gives them.

To add one: write its file here and add its line to :data:`METHODS`.
"""

from __future__ import annotations

from typing import Any

from fedfreeze.layout import Layout
from strategies.methods.fedavg import FedAvg
from strategies.methods.method import Method

METHODS: dict[str, type[Method]] = {method.name: method for method in (FedAvg,)}


def method_for(table: Any, layout: Layout) -> Method:
    """The method that a checked ``[method]`` table names."""
    return METHODS[table.name](table, layout)


__all__ = ["METHODS", "Method", "method_for"]
