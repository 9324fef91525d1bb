"""What a policy may ask about a client's board before it advises: what fits, and for how long."""

from __future__ import annotations

from collections.abc import Sequence

from strategies.means import Means


class Outlook:
    """One board in one round, with everything that the strategy asks of it.

    Args:
        means: of the board, without stages.
    """

    def __init__(self, means: Means) -> None:
        self._means = means

    def affords(self, layers: Sequence[str]) -> bool:
        """Whether the board can train exactly these layers together, for one epoch at least."""
        return self._means.terms(layers) is not None

    def seconds(self, layers: Sequence[str]) -> float:
        """Modelled seconds of a round of all its epochs that trains these, whatever the deadline.

        The packet is the largest that the uplink and the strategy allow.
        """
        means = self._means
        flops = means.limits.epochs * means.epoch_flops(layers)
        packet = max(means.least_packet_bytes(layers), means.most_packet_bytes)
        return means.seconds(flops, packet)
