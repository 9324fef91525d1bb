"""Arrays to packet, under a hard byte budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compression import dense, literal
from compression.decode import decode
from compression.packet import EMPTY_PACKET_BYTES, Kind, close, frame_bytes, refusal
from compression.proposal import Proposer
from compression.quantise import LARGEST_FLOAT, SMALLEST_STEP
from compression.search import fill
from compression.segments import Floats, Segments, Values, gather
from compression.settings import CodecSettings
from compression.shared import flat_positions
from compression.wishes import Weights, Wishes
from fedfreeze.errors import PacketError
from fedfreeze.layout import Layout

_SPARSE = CodecSettings()
_NONE: dict[str, Any] = {}
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
        unmet_floors: layers that carry fewer values than their floor demands, for want of bytes.
        widths: in mode literal, bits of a value by layer of which some are kept.
    """

    packet: bytes
    decoded: dict[str, Floats]
    kept: int
    step: float | None
    empty: bool
    unmet_floors: tuple[str, ...] = ()
    widths: Mapping[str, int] = field(default_factory=dict)


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
    floors: Mapping[str, int] = _NONE,
    importance: Weights = _NONE,
    ranges: Mapping[str, float] = _NONE,
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
        settings: sparse, dense or literal.
        positions: ascending flat indices for each parameter tensor, for a mask that both ends
            know: all of them are sent, or none where the budget is too small, and no index
            travels. Of no positions at all the packet is empty. Mode sparse without a density
            only.
        step: the quantiser's step instead of a search, rounded to float32. Mode sparse only.
        floors: least kept values of key layers, zeros not counted; what the budget cannot hold is
            in ``unmet_floors``. Mode sparse only.
        importance: how much a squared error counts, by layer or tensor, as one weight or one for
            each row of the tensor; 1 where absent. Only ratios count: the step is finer by powers
            of two the more a weight is above the smallest. Mode sparse only.
        ranges: how large each layer's values have lately been (:func:`compression.value_ranges`).
            Mode literal only; a layer without one is judged by this update alone.

    Raises:
        LayoutError: an unknown layer, or a tensor that is missing or of another shape or dtype.
        PacketError: values that are not finite, a dense packet over its budget, or arguments that
            exclude each other.
    """
    job = _Job(update, layout, Segments.of(layout, layers), budget_bytes, round_number)
    if settings.mode != "sparse":
        if positions is not None or step is not None:
            raise refusal(
                "no positions and no step", "some", f"mode {settings.mode} has no use for them"
            )
        return job.dense(settings) if settings.mode == "dense" else job.literal(settings, ranges)
    if positions is not None and settings.density is not None:
        raise refusal(
            "shared positions or a density", "both", "all shared positions are sent: leave it out"
        )
    if step is not None and not SMALLEST_STEP <= step <= LARGEST_FLOAT:
        raise refusal(
            f"a step from {SMALLEST_STEP:.3g} to {LARGEST_FLOAT:.3g}", repr(step), "scale the step"
        )
    wishes = Wishes.of(job.segments, settings, floors, importance)
    return job.sparse(wishes, positions, step)


class _Job:
    """One update on its way into one packet."""

    def __init__(
        self,
        update: Mapping[str, NDArray[np.float32]],
        layout: Layout,
        segments: Segments,
        budget_bytes: int,
        round_number: int,
    ) -> None:
        self.segments = segments
        self._update = update
        self._layout = layout
        self._budget_bytes = budget_bytes
        self._round_number = round_number
        buffers = gather(update, segments.buffers)
        self._front = buffers.astype("<f4").tobytes()
        self._left_bytes = budget_bytes - frame_bytes(layout) - len(self._front)

    def dense(self, settings: CodecSettings) -> Encoded:
        """Every value, with so many bits each."""
        flat = gather(self._update, self.segments.parameters)
        if not self.segments.layers:
            return self._empty()
        kind = _DENSE_KINDS[settings.bits]
        excess = dense.body_bytes(kind, self.segments) - self._left_bytes
        if excess > 0:
            raise PacketError(
                f"dense packet: expected at most {self._budget_bytes} bytes, got "
                f"{self._budget_bytes + excess}; raise the budget, use fewer bits, or use mode "
                "sparse"
            )
        packet = self._closed(kind, dense.pack(kind, flat, self.segments))
        decoded = decode(packet, self._layout, max_bytes=len(packet))
        return Encoded(packet, decoded.update, len(flat), None, empty=False)

    def literal(self, settings: CodecSettings, ranges: Mapping[str, float]) -> Encoded:
        """The largest values that fit, as FedFreeze's text packs them."""
        flat = gather(self._update, self.segments.parameters)
        if not self.segments.layers:
            return self._empty()
        parts = literal.fill(flat, self.segments, self._left_bytes, settings.density, ranges)
        if parts is None:
            return self._empty()
        packet = self._closed(Kind.LITERAL, literal.pack(parts))
        decoded = decode(packet, self._layout, max_bytes=self._budget_bytes)
        kept = sum(len(part.positions) for part in parts)
        named = zip(self.segments.layers, parts, strict=True)
        widths = {name: part.width for name, part in named if part.width}
        return Encoded(packet, decoded.update, kept, None, empty=False, widths=widths)

    def sparse(
        self,
        wishes: Wishes,
        positions: Mapping[str, NDArray[np.int64]] | None,
        step: float | None,
    ) -> Encoded:
        """What earns its bits, or all that both ends have agreed on."""
        segments = self.segments
        values = Values.of(self._update, segments)
        shared = None if positions is None else flat_positions(positions, segments)
        nothing = shared is not None and not len(shared) and values.largest > 0
        if not segments.layers or self._left_bytes <= 0 or nothing:
            return self._empty(wishes)
        proposer = Proposer(values, shared, wishes)
        # Thresholds beyond float32 become infinite, which nothing reaches.
        with np.errstate(over="ignore"):
            body = fill(proposer, self._left_bytes, step)
        if body is None:
            return self._empty(wishes)
        demanded = {
            owner: min(least, proposer.filled(owner)) for owner, least in wishes.floors.items()
        }
        kind = Kind.SPARSE if shared is None else Kind.SHARED
        packet = self._closed(kind, body.pack())
        # What the decoder says takes the place of the magnitudes.
        decoded = decode(
            packet,
            self._layout,
            max_bytes=self._budget_bytes,
            positions=positions,
            into=values.magnitudes,
        )
        return Encoded(
            packet,
            decoded.update,
            body.kept,
            body.quantised.step,
            empty=False,
            unmet_floors=_unmet(decoded.update, segments, demanded),
        )

    def _closed(self, kind: Kind, body: bytes) -> bytes:
        return close(
            kind, self._layout, self.segments.layers, self._front + body, self._round_number
        )

    def _empty(self, wishes: Wishes | None = None) -> Encoded:
        packet = close(Kind.EMPTY, self._layout, (), b"", self._round_number)
        assert len(packet) == EMPTY_PACKET_BYTES
        floors = {} if wishes is None else wishes.floors
        unmet = tuple(self.segments.layers[owner] for owner in floors)
        return Encoded(packet, {}, 0, None, empty=True, unmet_floors=unmet)


def _unmet(
    decoded: Mapping[str, Floats], segments: Segments, demanded: Mapping[int, int]
) -> tuple[str, ...]:
    """Layers of which fewer values arrive than demanded; those that arrive as 0 do not count."""
    sent = np.zeros(len(segments.layers), np.int64)
    for tensor, owner in zip(segments.parameters, segments.owners.tolist(), strict=True):
        if owner in demanded:
            sent[owner] += np.count_nonzero(decoded[tensor.name])
    return tuple(segments.layers[n] for n, least in demanded.items() if sent[n] < least)
