"""Clients whose residual grows: what they learn does not get through their byte budget.

With error feedback a residual settles at a few times the norm of one round's update. Where it is
more than :data:`MOST_RATIO` times that for :data:`PATIENCE_ROUNDS` of the client's rounds in a row,
its packets are too small for what it trains, or it sends nothing at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from logging import WARNING

from flwr.common.logger import log

from fedfreeze.layout import Arrays, Layout
from strategies.aggregation.step import l2_norm
from strategies.local_step import LayerMeasures
from strategies.round_result import RoundResult

MOST_RATIO = 10.0
PATIENCE_ROUNDS = 5


def residual_ratio(
    residual_norm: float,
    measures: Mapping[str, LayerMeasures],
    before: Arrays,
    layout: Layout,
) -> float | None:
    """Norm of what is left to send over that of what the client's training moved in this round.

    Args:
        residual_norm: as the client reports it.
        measures: by trained layer, with its movement relative to the layer's norm.
        before: the model that the client trained from.
        layout: of the model.

    Returns:
        Infinite where training moved nothing, 0 where also nothing is left; None where no layer
        was measured.
    """
    if not measures:
        return None
    squares = 0.0
    for name, measured in measures.items():
        scale = l2_norm(before[tensor.name] for tensor in layout[name].parameters)
        squares += (measured.movement * scale) ** 2
    if residual_norm == 0:
        return 0.0
    return residual_norm / math.sqrt(squares) if squares > 0 else math.inf


class ResidualWatch:
    """Counts, for each client, in how many of its rounds in a row the ratio was too large."""

    def __init__(self) -> None:
        self._rounds: dict[str, int] = {}

    def look_at(self, result: RoundResult, before: Arrays, layout: Layout) -> None:
        """Write the ratio of each client that answered, and its warning, into the result.

        Args:
            result: of a round that is not merged yet.
            before: the model that its clients trained from.
            layout: of the model.
        """
        for device_id, answer in sorted(result.answers.items()):
            ratio = residual_ratio(answer.report.residual_norm, answer.measures, before, layout)
            if ratio is None:
                continue
            result.residual_ratios[device_id] = ratio
            if warning := self.note(device_id, ratio):
                result.residual_warnings[device_id] = warning
                log(WARNING, warning)

    def note(self, device_id: str, ratio: float) -> str | None:
        """A warning in the client's fifth such round in a row, and in every fifth thereafter."""
        if ratio <= MOST_RATIO:
            self._rounds.pop(device_id, None)
            return None
        count = self._rounds[device_id] = self._rounds.get(device_id, 0) + 1
        if count % PATIENCE_ROUNDS:
            return None
        return (
            f"{device_id}: expected a residual of up to {MOST_RATIO:g} times the round's update, "
            f"got {ratio:.3g} times, and more than {MOST_RATIO:g} for {count} rounds in a row; "
            "raise its byte budget (compression.upload-time, compression.compression-ratio) or let "
            'stale residuals go (residual.frozen, residual.missed = "decay")'
        )

    def state(self) -> dict[str, int]:
        """For a checkpoint."""
        return dict(sorted(self._rounds.items()))

    def restore(self, state: Mapping[str, int]) -> None:
        """Take back :meth:`state`."""
        self._rounds = dict(state)
