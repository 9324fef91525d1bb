"""How many bytes the orders of a run bring a simulated client at most, before there is a model."""

from __future__ import annotations

from fedfreeze.layout import Layout
from strategies.downlink import packet_rule
from strategies.model_bytes import blob_bytes
from strategies.orders import ORDER_BYTES
from strategies.schema import Strategy

# Before each packet on the way down stands its length.
_LENGTH_BYTES = 4


class OrderBytes:
    """Of one run.

    It takes every layer to change in every round.
    """

    def __init__(self, settings: Strategy, layout: Layout) -> None:
        self._whole = blob_bytes(layout, layout.names)
        # A client has the file of a pretrained model itself; nothing is sent unless all always is.
        has_file = settings.model.pretrained is not None
        has_it = has_file and settings.compression.downlink != "dense"
        self._first = blob_bytes(layout, ()) if has_it else self._whole
        rule = packet_rule(layout, settings.compression)
        self._packet = None if rule is None else rule.budget_bytes + _LENGTH_BYTES

    def of(self, number: int, before: int | None) -> int:
        """Of the order of round ``number``.

        Args:
            number: of the round.
            before: the last round that the client was asked in; None for a client that joins. Only
                in round 1 is the model then what its own file holds.
        """
        if before is None:
            return (self._first if number == 1 else self._whole) + ORDER_BYTES
        if self._packet is None:
            return self._whole + ORDER_BYTES
        return min(self._whole, (number - before) * self._packet) + ORDER_BYTES
