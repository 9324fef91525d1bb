"""Packet to arrays. The input is hostile: only ``PacketError`` leaves this module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression import dense, literal
from compression.packet import Kind, open_packet, refusal
from compression.parse import parse
from compression.reader import Reader
from compression.restore import restore
from compression.segments import Floats, Segments, scatter
from compression.shared import flat_positions
from fedfreeze.layout import Layout


@dataclass(frozen=True)
class Decoded:
    """What a packet says.

    Attributes:
        update: every float tensor of every covered layer, dense float32 and finite; values that
            were not sent are 0.
        layers: covered layers in forward order; none for the empty packet.
        round_number: the round that the sender names.
    """

    update: dict[str, Floats]
    layers: tuple[str, ...]
    round_number: int


def decode(
    packet: bytes,
    layout: Layout,
    *,
    max_bytes: int,
    positions: Mapping[str, NDArray[np.int64]] | None = None,
    into: Floats | None = None,
) -> Decoded:
    """Read a packet.

    Work and memory are bounded by the layout and the length of the packet. The checksum finds
    damage, not forgery: who sent the bytes is for the transport to prove.

    Args:
        packet: bytes that arrived.
        layout: of the model that both ends train.
        max_bytes: the sender's budget, or ``EMPTY_PACKET_BYTES`` where that is more.
        positions: as given to :func:`compression.encode`; the packet must have been written
            over them.
        into: memory for the parameters of a sparse packet, overwritten; None to take new.

    Raises:
        PacketError: anything but a canonical packet of this layout.
    """
    frame = open_packet(packet, layout, max_bytes)
    if frame.kind is Kind.EMPTY:
        return Decoded({}, (), frame.round_number)
    if (frame.kind is Kind.SHARED) != (positions is not None):
        raise refusal(
            "positions of its own" if positions is None else "shared positions",
            f"kind {frame.kind.name}",
            "both ends must agree on whether positions are shared",
        )
    segments = Segments.of(layout, frame.layers)
    reader = Reader(frame.body)
    buffers = reader.floats(segments.buffer_count)
    if frame.kind in (Kind.SPARSE, Kind.SHARED):
        shared = None if positions is None else flat_positions(positions, segments)
        values = restore(parse(reader, segments, shared), shared, into)
    elif frame.kind is Kind.LITERAL:
        values = literal.parse(reader, segments)
    else:
        values = dense.parse(frame.kind, reader, segments)
    reader.finish()
    update = scatter(values, segments.parameters) | scatter(buffers, segments.buffers)
    return Decoded(update, frame.layers, frame.round_number)
