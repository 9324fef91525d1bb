"""Packets on the way down: how a step of the published model becomes one packet for everybody.

Both ends read this rule off the layout and the strategy: the server to write packets, a client to
bound what it takes. The server feeds back what a packet did not carry (Karimireddy et al. 2019):
``u = step + residual``; ``published += decode(packet)``; ``residual = u - decode(packet)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from compression import EMPTY_PACKET_BYTES, CodecSettings
from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layout
from strategies.packet_sizes import (
    SMALLEST_SPARSE_BYTES,
    buffer_bytes,
    dense_packet_bytes,
    dense_update_bytes,
)
from strategies.tables import Compression

QUANTISED_BITS: Final = 8


@dataclass(frozen=True)
class PacketRule:
    """How steps become packets.

    Attributes:
        settings: of the codec.
        budget_bytes: no packet is larger.
        flushes: whether a packet also carries what is left of layers that nobody trained.
    """

    settings: CodecSettings
    budget_bytes: int
    flushes: bool


def packet_rule(layout: Layout, compression: Compression) -> PacketRule | None:
    """The rule of a strategy; None where the downlink sends dense layers.

    What 8 bits leave of a layer is at most 1/254 of the largest value of its last step; it waits
    until the layer is trained again, since to send it would cost a byte a value. What a sparse
    packet leaves is most of the step. It competes with the other layers for the next packets.

    Raises:
        ConfigError: the ratio leaves less than the smallest packet.
    """
    if compression.downlink == "quantised":
        budget = dense_packet_bytes(layout, QUANTISED_BITS)
        return PacketRule(CodecSettings("dense", QUANTISED_BITS), budget, flushes=False)
    if compression.downlink != "sparse":
        return None
    dense_bytes = dense_update_bytes(layout)
    budget = int(dense_bytes / compression.downlink_ratio)
    # One byte a layer pays for its bit and its row in the packet's tables.
    smallest = SMALLEST_SPARSE_BYTES + buffer_bytes(layout) + len(layout)
    if budget < smallest:
        raise ConfigError(
            f"compression.downlink-ratio: {compression.downlink_ratio:g} leaves {budget} of the "
            f"{dense_bytes} bytes of the dense model; a packet that carries a value has {smallest} "
            "or more; lower the ratio"
        )
    return PacketRule(CodecSettings("sparse"), max(budget, EMPTY_PACKET_BYTES), flushes=True)


def added(before: NDArray[np.generic], change: NDArray[np.float32]) -> NDArray[np.generic]:
    """What a tensor is after a packet, to the bit the same on both ends.

    One addition in float32 (float64 for a tensor of that), rounded to the tensor's own dtype; a
    result that is not finite is for the caller to refuse.

    >>> added(np.array([1.0], np.float32), np.array([0.5], np.float32))
    array([1.5], dtype=float32)
    """
    wide = np.result_type(before.dtype, np.float32)
    with np.errstate(over="ignore"):
        return np.asarray((before.astype(wide) + change).astype(before.dtype))
