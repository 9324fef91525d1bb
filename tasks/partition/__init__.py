"""Which training examples the server validates on, and which each client holds.

Each way to divide is a small pure function in a module of its own; :class:`Split` chooses among
them. Nothing here imports torch: a strategy is checked without it.
"""

from tasks.partition.split import Partition, Split

__all__ = ["Partition", "Split"]
