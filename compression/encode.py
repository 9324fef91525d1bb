"""Arrays to packet, under a hard byte budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression import dense
from compression.decode import decode
from compression.packet import EMPTY_PACKET_BYTES, Kind, close, frame_bytes, refusal
from compression.quantise import LARGEST_FLOAT, SMALLEST_STEP
from compression.search import Proposer, fill
from compression.segments import Floats, Segments, gather
from compression.settings import CodecSettings
from compression.shared import flat_positions
from fedfreeze.errors import PacketError
from fedfreeze.layout import Layout

_SPARSE = CodecSettings()
_DENSE_KINDS = {32: Kind.DENSE32, 16: Kind.DENSE16, 8: Kind.DENSE8}


@dataclass(frozen=True)
class Encoded:
    """A packet, and what its receiver will read in it.

    Attributes:
        packet: the bytes.
        decoded: the update that the packet decodes to, from the very bytes.
        kept: parameters that it carries; buffers are not counted.
        step: of the quantiser, or None in mode dense and for the empty packet.
        empty: whether it covers no layer, so that the sender keeps all of the update.
    """

    packet: bytes
    decoded: dict[str, Floats]
    kept: int
    step: float | None
    empty: bool


def encode(
    update: Mapping[str, NDArray[np.float32]],
    layout: Layout,
    layers: Sequence[str],
    *,
    budget_bytes: int,
    round_number: int,
    settings: CodecSettings = _SPARSE,
    positions: Mapping[str, NDArray[np.int64]] | None = None,
    step: float | None = None,
) -> Encoded:
    """Write an update into at most ``budget_bytes``.

    Sparse packets keep what earns its bits (:mod:`compression.rate`). Float buffers always travel
    whole. Where the budget leaves room for no parameter, and there is one to send, the result is
    the empty packet; its ``EMPTY_PACKET_BYTES`` are the one length that may exceed the budget.

    Args:
        update: float32 arrays by tensor name, for every float tensor of ``layers``. Tensors of
            other layers are passed over, as are integer tensors.
        layout: of the model that both ends train.
        layers: trained layers; the packet covers all of them even where it keeps nothing.
        budget_bytes: largest packet.
        round_number: written into the packet, from 0 to 2^32 - 1.
        settings: sparse or dense.
        positions: ascending flat indices for each parameter tensor, for a mask that both ends
            know: all of them are sent, and no index travels. Mode sparse only.
        step: the quantiser's step instead of a search, rounded to float32. Mode sparse only.

    Raises:
        LayoutError: an unknown layer, or a tensor that is missing or of another shape or dtype.
        PacketError: values that are not finite, a dense packet over its budget, or arguments that
            exclude each other.
    """
    segments = Segments.of(layout, layers)
    buffers = gather(update, segments.buffers)
    values = gather(update, segments.parameters)
    budget_left = budget_bytes - frame_bytes(layout) - buffers.nbytes
    front = buffers.astype("<f4").tobytes()
    if settings.mode == "dense":
        if positions is not None or step is not None:
            raise refusal("no positions and no step", "some", "mode dense sends every value")
        if not segments.layers:
            return _empty(layout, round_number)
        kind = _DENSE_KINDS[settings.bits]
        excess = dense.body_bytes(kind, segments) - budget_left
        if excess > 0:
            raise PacketError(
                f"dense packet: expected at most {budget_bytes} bytes, got "
                f"{budget_bytes + excess}; raise the budget, use fewer bits, or use mode sparse"
            )
        packet = close(
            kind, layout, segments.layers, front + dense.pack(kind, values, segments), round_number
        )
        decoded = decode(packet, layout, max_bytes=len(packet))
        return Encoded(packet, decoded.update, len(values), None, empty=False)
    if step is not None and not SMALLEST_STEP <= step <= LARGEST_FLOAT:
        raise refusal(
            f"a step from {SMALLEST_STEP:.3g} to {LARGEST_FLOAT:.3g}", repr(step), "scale the step"
        )
    shared = None if positions is None else flat_positions(positions, segments)
    if not segments.layers or budget_left <= 0:
        return _empty(layout, round_number)
    body = fill(Proposer(values, segments, shared), budget_left, step)
    if body is None:
        return _empty(layout, round_number)
    kind = Kind.SPARSE if shared is None else Kind.SHARED
    packet = close(kind, layout, segments.layers, front + body.pack(), round_number)
    decoded = decode(packet, layout, max_bytes=budget_bytes, positions=positions)
    return Encoded(packet, decoded.update, body.kept, body.quantised.step, empty=False)


def _empty(layout: Layout, round_number: int) -> Encoded:
    packet = close(Kind.EMPTY, layout, (), b"", round_number)
    assert len(packet) == EMPTY_PACKET_BYTES
    return Encoded(packet, {}, 0, None, empty=True)
