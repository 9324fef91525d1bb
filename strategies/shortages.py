"""Why a set of layers does not fit: which limit is short, what it needs and what there is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fedfreeze.plan import ReasonCode
from fedfreeze.units import Dimension, written
from strategies.means import Means

NO_WATTS = (
    "limits.energy-j-per-round counts with the board's watts, and nobody knows them: "
    "expected the profile of a board that ships with FedFreeze; name one in the node's "
    "config, or remove the limit"
)


@dataclass(frozen=True)
class Use:
    """What training a set of layers takes.

    Attributes:
        layer: the one that the set is looked at for.
        reaches: whether it is the shallowest, so that the backward pass ends in it.
        memory_bytes: at the peak.
        epoch_flops: of one pass over the examples.
        parameters: of the whole set.
        least_packet_bytes: see :mod:`strategies.means`.
    """

    layer: str
    reaches: bool
    memory_bytes: float
    epoch_flops: float
    parameters: int
    least_packet_bytes: int


@dataclass(frozen=True)
class Shortage:
    """One limit that is too small.

    Attributes:
        turn: place in the order in which limits are looked at.
        limit: a reason's code, or "downlink".
        needs, has: in the limit's own unit.
        detail: both, in words.
        is_general: whether it has nothing to do with the layer.
    """

    turn: int
    limit: str
    needs: float
    has: float
    detail: str
    is_general: bool = False


def shortages(
    means: Means, use: Use, epochs: int = 1, packet_bytes: int | None = None
) -> Iterator[Shortage]:
    """Every limit that is short for the set, in a fixed order.

    Memory, bytes (``uplink`` or ``upload``), the transfers' time, ``compute`` (the deadline),
    ``flops`` and ``energy``.

    Args:
        means: of the board.
        use: what the set takes.
        epochs: of training.
        packet_bytes: of the packet; the least that the set can have unless given.
    """
    yield from _memory(means, use)
    yield from _bytes(means, use)
    packet = use.least_packet_bytes if packet_bytes is None else packet_bytes
    yield from _time(means, epochs * use.epoch_flops, packet)
    yield from _per_round(means, epochs * use.epoch_flops, packet)


def most_strained(means: Means, use: Use) -> ReasonCode:
    """The limit that the set comes closest to, for where rounding hides that one is short."""
    deadline = means.seconds(use.epoch_flops, use.least_packet_bytes) / means.limits.deadline_s
    shares: dict[ReasonCode, float] = {
        "memory": use.memory_bytes / means.capacity.memory_bytes.value,
        means.packet_limit: use.least_packet_bytes / max(1, means.most_packet_bytes),
        "compute": deadline,
    }
    if means.limits.flops_per_round is not None:
        shares["flops"] = use.epoch_flops / means.limits.flops_per_round
    joules = means.joules(use.epoch_flops, use.least_packet_bytes)
    if means.limits.energy_j_per_round is not None and joules is not None:
        shares["energy"] = joules / means.limits.energy_j_per_round
    return max(shares, key=shares.__getitem__)


def _memory(means: Means, use: Use) -> Iterator[Shortage]:
    has = means.capacity.memory_bytes.value
    if use.memory_bytes > has:
        what = "training from here on needs" if use.reaches else "training it, too, needs"
        detail = (
            f"{what} {written(use.memory_bytes, Dimension.BYTES)}, "
            f"the board has {written(has, Dimension.BYTES)}"
        )
        yield Shortage(0, "memory", use.memory_bytes, has, detail)


def _bytes(means: Means, use: Use) -> Iterator[Shortage]:
    limits, most = means.limits, means.most_packet_bytes
    if most < limits.smallest_packet_bytes:
        envelope = means.load.envelope_bytes
        if means.packet_limit == "upload":
            carries = f"limits.upload-bytes-per-round is {limits.upload_bytes_per_round}"
            has = float(limits.upload_bytes_per_round or 0)
        else:
            has = means.uplink_bytes
            carries = (
                f"the uplink carries {written(has, Dimension.BYTES)} in "
                f"{written(limits.upload_time_s, Dimension.SECONDS)}"
            )
        detail = (
            f"{carries}; a message needs {written(envelope, Dimension.BYTES)} and the smallest "
            f"packet {written(limits.smallest_packet_bytes, Dimension.BYTES)} more"
        )
        needs = envelope + limits.smallest_packet_bytes
        yield Shortage(1, means.packet_limit, needs, has, detail, is_general=True)
    elif use.least_packet_bytes > most:
        detail = _thin(means, use)
        yield Shortage(1, means.packet_limit, use.least_packet_bytes, most, detail)


def _thin(means: Means, use: Use) -> str:
    limits, layout, most = means.limits, means.layout, means.most_packet_bytes
    if limits.dense_bits is not None:
        worth = max(0, most - limits.smallest_packet_bytes) * 8 / limits.dense_bits
    else:
        worth = layout.parameter_count * most / limits.full_upload_bytes
    if use.parameters <= worth:
        needs = written(use.least_packet_bytes, Dimension.BYTES)
        return (
            f"float buffers travel whole: with this layer a packet has {needs} or more, "
            f"the budget is {written(most, Dimension.BYTES)}"
        )
    own = layout[use.layer].parameter_count
    what = f"this layer has {own:,}" if own > worth else f"with it there are {use.parameters:,}"
    return (
        f"{written(most, Dimension.BYTES)} of the full "
        f"{written(limits.full_upload_bytes, Dimension.BYTES)} serve about {worth:,.0f} "
        f"parameters; {what}"
    )


def _time(means: Means, flops: float, packet_bytes: int) -> Iterator[Shortage]:
    deadline = means.limits.deadline_s
    down_s, up_s = means.download_s, means.upload_s(packet_bytes)
    total_s = means.seconds(flops, packet_bytes)
    if down_s + up_s > deadline:
        detail = (
            f"the transfers alone take {written(down_s, Dimension.SECONDS)} down and "
            f"{written(up_s, Dimension.SECONDS)} up, the deadline is "
            f"{written(deadline, Dimension.SECONDS)}"
        )
        limit = "downlink" if down_s > up_s else "uplink"
        yield Shortage(2, limit, down_s + up_s, deadline, detail, is_general=True)
    elif total_s > deadline:
        detail = (
            f"the round takes {written(total_s, Dimension.SECONDS)} with it, "
            f"the deadline is {written(deadline, Dimension.SECONDS)}"
        )
        yield Shortage(3, "compute", total_s, deadline, detail)


def _per_round(means: Means, flops: float, packet_bytes: int) -> Iterator[Shortage]:
    most_flops, most_j = means.limits.flops_per_round, means.limits.energy_j_per_round
    if most_flops is not None and flops > most_flops:
        detail = (
            f"training takes {flops:.3g} operations with it, "
            f"limits.flops-per-round is {most_flops:.3g}"
        )
        yield Shortage(4, "flops", flops, most_flops, detail)
    joules = means.joules(flops, packet_bytes)
    if most_j is not None and joules is None:
        yield Shortage(5, "energy", math.inf, most_j, NO_WATTS, is_general=True)
    elif most_j is not None and joules is not None and joules > most_j:
        detail = (
            f"the round takes {joules:.3g} J with it, limits.energy-j-per-round is {most_j:.3g}"
        )
        yield Shortage(5, "energy", joules, most_j, detail)
