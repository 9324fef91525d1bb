"""What the codec's benchmark measures on one update; nothing here prints."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from anchors import Anchors
from numpy.typing import NDArray

from compression import CodecSettings, decode, encode
from compression.packet import frame_bytes
from compression.proposal import Cut, Proposer
from compression.quantise import Quantised
from compression.search import fill
from compression.segments import Segments, Values
from compression.wishes import Wishes
from fedfreeze.layout import Layout

Update = dict[str, NDArray[np.float32]]

PLAIN = CodecSettings(structured=False, affine=False)
STRUCTURED = CodecSettings(affine=False)
EFFORTS = {"thorough": CodecSettings(), "fast": CodecSettings(effort="fast")}


@dataclass(frozen=True)
class State:
    """An update of a model in training.

    Attributes:
        model, kind: what it is called.
        layout: of the model.
        update: its tensors.
        flat: all of them one behind another.
    """

    model: str
    kind: str
    layout: Layout
    update: Update
    flat: NDArray[np.float32]

    def budget(self, ratio: int) -> int:
        """Bytes of a packet that is ``ratio`` times smaller than float32."""
        return 4 * len(self.flat) // ratio

    def encode(self, ratio: int, settings: CodecSettings) -> tuple[bytes, Update]:
        """The packet at this ratio and what it decodes to."""
        sent = encode(
            self.update,
            self.layout,
            self.layout.names,
            budget_bytes=self.budget(ratio),
            round_number=0,
            settings=settings,
        )
        return sent.packet, sent.decoded

    def error(self, decoded: Update) -> float:
        """Squared error over squared norm."""
        lost = sum(
            float(((self.update[name].astype(np.float64) - decoded[name]) ** 2).sum())
            for name in decoded
        )
        return lost / float((self.flat.astype(np.float64) ** 2).sum())


@dataclass(frozen=True)
class Size:
    """Bytes of packets against what an ideal coder of independent values would take.

    Attributes:
        kept: values in the packet without classes.
        plain: that packet over its floor.
        classes: the same values, cells and step coded with classes, over the same floor.
        against_plain: that over the packet without classes.
        excess_bytes: what classes add to it for each tensor; below 0 where they save.
        own: a packet whose values were chosen for their classes, over the floor of its own values.
    """

    kept: int
    plain: float
    classes: float
    against_plain: float
    excess_bytes: float
    own: float


def size(state: State, ratio: int) -> Size:
    """Both ways at one ratio."""
    plain_bytes, plain = _sent(state, ratio, PLAIN)
    own_bytes, own = _sent(state, ratio, STRUCTURED)
    proposer = _proposer(state, STRUCTURED)
    magnitudes = proposer.magnitudes[plain.indices]
    cut = Cut(plain.indices, magnitudes, plain.zones, plain.step)
    coded = frame_bytes(state.layout) + proposer.body(cut).nbytes
    floor, own_floor = floor_bits(plain, state.layout), floor_bits(own, state.layout)
    tensors = len(Segments.of(state.layout, state.layout.names).parameters)
    return Size(
        kept=len(plain.indices),
        plain=8 * plain_bytes / floor,
        classes=8 * coded / floor,
        against_plain=coded / plain_bytes,
        excess_bytes=(coded - plain_bytes) / tensors,
        own=8 * own_bytes / own_floor,
    )


def floor_bits(quantised: Quantised, layout: Layout) -> float:
    """What independent values take by tensor, without headers, tables or a checksum.

    ``log2 C(n, k)`` for the positions, a bit for each sign, and the order-0 entropy of the cells.
    """
    segments = Segments.of(layout, layout.names)
    order = np.argsort(quantised.indices)
    indices, cells = quantised.indices[order], quantised.cells[order]
    ends = np.searchsorted(indices, segments.starts + segments.sizes)
    bits, first = 0.0, 0
    for last, n in zip(ends.tolist(), segments.sizes.tolist(), strict=True):
        k = last - first
        natural = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        _, members = np.unique(cells[first:last], return_counts=True)
        entropy = float((members * np.log2(k / members)).sum()) if k else 0.0
        bits += natural / math.log(2) + k + entropy
        first = last
    return bits


@dataclass(frozen=True)
class Error:
    """Error shares at equal bytes.

    Attributes:
        stc, int32_fp32, leb128_8bit: of what others send.
        thorough, fast: of ours.
        bytes_of_stc: our bytes (thorough) over those that STC needs for our error; None where it
            never comes so near.
    """

    stc: float
    int32_fp32: float
    leb128_8bit: float
    thorough: float
    fast: float
    bytes_of_stc: float | None


def errors(state: State, ratios: Sequence[int]) -> dict[int, Error]:
    """At each ratio."""
    anchors = Anchors(state.flat)
    found = {}
    for ratio in ratios:
        ours = {name: state.encode(ratio, chosen) for name, chosen in EFFORTS.items()}
        error = {name: state.error(decoded) for name, (_, decoded) in ours.items()}
        packet, _ = ours["thorough"]
        needed = anchors.stc_bytes(error["thorough"])
        budget = state.budget(ratio)
        found[ratio] = Error(
            stc=anchors.stc(budget),
            int32_fp32=anchors.int32_fp32(budget),
            leb128_8bit=anchors.leb128_8bit(budget),
            thorough=error["thorough"],
            fast=error["fast"],
            bytes_of_stc=None if needed is None else len(packet) / needed,
        )
    return found


@dataclass(frozen=True)
class Speed:
    """Thread CPU time, medians.

    Attributes:
        encode_ms, decode_ms: of one packet.
        encode_mb_s, decode_mb_s: of raw float32.
        encode_passes: encoding over one ``np.partition`` of the magnitudes.
    """

    encode_ms: float
    decode_ms: float
    encode_mb_s: float
    decode_mb_s: float
    encode_passes: float


def speed(state: State, ratio: int, settings: CodecSettings, repeats: int) -> Speed:
    """Of encoding and decoding."""
    packet, _ = state.encode(ratio, settings)
    magnitudes = np.abs(state.flat)
    kth = len(magnitudes) - len(magnitudes) // 100
    encode_ms = _cpu_ms(lambda: state.encode(ratio, settings), repeats)
    decode_ms = _cpu_ms(lambda: decode(packet, state.layout, max_bytes=len(packet)), repeats)
    pass_ms = _cpu_ms(lambda: np.partition(magnitudes, kth), repeats)
    raw_mb = state.flat.nbytes / 1e6
    return Speed(
        encode_ms=encode_ms,
        decode_ms=decode_ms,
        encode_mb_s=1e3 * raw_mb / encode_ms,
        decode_mb_s=1e3 * raw_mb / decode_ms,
        encode_passes=encode_ms / pass_ms,
    )


@dataclass(frozen=True)
class Memory:
    """Peak of traced memory over the size of the update, which is not counted itself."""

    encode: float
    decode: float


def memory(state: State, ratio: int, settings: CodecSettings) -> Memory:
    """Of encoding and decoding, results among it."""
    packet, _ = state.encode(ratio, settings)
    return Memory(
        encode=_peak_bytes(lambda: state.encode(ratio, settings)) / state.flat.nbytes,
        decode=_peak_bytes(lambda: decode(packet, state.layout, max_bytes=len(packet)))
        / state.flat.nbytes,
    )


def _cpu_ms(task: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.thread_time()
        task()
        taken.append(time.thread_time() - start)
    return 1e3 * median(taken)


def _peak_bytes(task: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        task()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak


def _sent(state: State, ratio: int, settings: CodecSettings) -> tuple[int, Quantised]:
    """Bytes of the packet that ``encode`` writes, and what it carries."""
    around = frame_bytes(state.layout)
    with np.errstate(over="ignore"):
        body = fill(_proposer(state, settings), state.budget(ratio) - around, None)
    assert body is not None  # the states have no buffers, and no budget here is so small
    return around + body.nbytes, body.quantised


def _proposer(state: State, settings: CodecSettings) -> Proposer:
    segments = Segments.of(state.layout, state.layout.names)
    wishes = Wishes.of(segments, settings, {}, {})
    return Proposer(Values.of(state.update, segments), None, wishes)
