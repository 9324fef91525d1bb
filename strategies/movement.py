"""How far an update may move a layer before nobody takes it for training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fedfreeze.layout import Arrays, Layout
from strategies.aggregation.step import l2_norm

# A layer that local training moved by more than so many times its own norm (and 1) is no update.
MOST_MOVEMENT = 1e3


@dataclass(frozen=True)
class TooFar:
    """A layer that would move by a norm of ``moved`` where ``limit`` is the most."""

    layer: str
    moved: float
    limit: float

    def __str__(self) -> str:
        return (
            f"layer {self.layer!r}: expected an update of a norm up to {self.limit:.3g}, "
            f"got {self.moved:.3g}"
        )


def too_far(deltas: Arrays, layers: Iterable[str], before: Arrays, layout: Layout) -> list[TooFar]:
    """The layers that would move by more than :data:`MOST_MOVEMENT` times their norm (and 1)."""
    found = []
    for name in layers:
        tensors = [tensor.name for tensor in layout[name].tensors if tensor.travels]
        moved = l2_norm(deltas[tensor] for tensor in tensors)
        limit = MOST_MOVEMENT * (l2_norm(before[tensor] for tensor in tensors) + 1)
        if not moved <= limit:
            found.append(TooFar(name, moved, limit))
    return found
