"""What becomes of a packet that was sent: the error-feedback ledger of a board.

After every round the board holds ``residual = what it meant to send - decode(packet)``, which is
right if the server merged the packet. The next order says which packet of this board was merged
last. A round then goes, in this order:

1. :func:`settle` the packet before: was it merged, or does it come back?
2. the rules for what waited (:mod:`client_app.waiting`): frozen layers, missed rounds;
3. add this round's update, encode, and take off what the packet decodes to;
4. round to float16, if the strategy wants that.

What is stored as ``residual_before`` is the result of step 1, so a round that is done again applies
the rules once. In float16 step 1 rounds as well when a packet came back. What rounding loses is no
part of the ledger: with every rule at ``keep``,

    sum(sent) + residual + sum(lost) = sum(delta).

All of it is pure.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from client_app.store import BoardState, History, Pending
from client_app.waiting import missed_rounds, waited
from compression import (
    CodecSettings,
    SharedMask,
    add,
    decode,
    encode,
    halved,
    packet_digest,
    subtract,
    value_ranges,
)
from fedfreeze.layout import Arrays, Layout
from strategies.movement import too_far
from strategies.tables import Precision, Residual

_log = logging.getLogger("fedfreeze")
_NOTHING: dict[str, Any] = {}

Outcome = Literal["nothing", "accepted", "returned", "repeated"]


@dataclass(frozen=True)
class Settled:
    """The residual with which a round begins.

    Attributes:
        rounding_norm: l2 norm of what rounding lost in settling; 0 in float32.
    """

    residual: Arrays
    history: History
    outcome: Outcome
    rounding_norm: float = 0.0


@dataclass(frozen=True)
class Sent:
    """What sending leaves behind.

    Attributes:
        rounding_norm: l2 norm of what rounding lost in this round. Where a packet came back, too,
            the sum of both norms, so at most that much was lost.
        unmet_floors: key layers of which the budget could not hold the least.
        widths: in mode literal, bits of a value by layer of which some are sent.
    """

    pending: Pending
    residual: Arrays
    history: History
    rounding_norm: float
    unmet_floors: tuple[str, ...] = ()
    widths: Mapping[str, int] = field(default_factory=dict)


def settle(
    state: BoardState,
    layout: Layout,
    *,
    round_number: int,
    accepted: tuple[int, str] | None,
    precision: Precision = "float32",
) -> Settled:
    """The residual with which round ``round_number`` begins, and how it came about.

    - ``accepted``: the pending packet is the one that was merged; the residual stands.
    - ``returned``: it was late, lost, or its round was void; ``residual += decode(packet)``, so
      that nothing the board has learned is lost.
    - ``repeated``: the server does the packet's own round again after a crash; the residual from
      before that round comes back, so that the round's work does not count twice.

    Raises:
        PacketError: in float16, the sum is not finite.
    """
    pending = state.pending
    if pending is None:
        return Settled(state.residual, state.history, "nothing")
    if pending.round_number == round_number:
        before = pending.residual_before, pending.history_before
        return Settled(*before, "repeated", pending.rounding_norm)
    if accepted == (pending.round_number, pending.digest):
        return Settled(state.residual, state.history, "accepted")
    returned = decode(
        pending.packet,
        layout,
        max_bytes=len(pending.packet),
        positions=pending.mask.positions(layout, layout.names) if pending.mask else None,
    )
    residual, lost = _kept(add(state.residual, returned.update), precision)
    old = pending.history_before.since
    since = {**state.history.since, **{n: old[n] for n in returned.layers if n in old}}
    return Settled(residual, replace(state.history, since=since), "returned", lost)


def send(
    delta: Arrays,
    settled: Settled,
    layout: Layout,
    layers: Sequence[str],
    *,
    budget_bytes: int,
    round_number: int,
    settings: CodecSettings,
    rules: Residual,
    before: Arrays,
    floors: Mapping[str, int] = _NOTHING,
    importance: Mapping[str, Any] = _NOTHING,
    mask: SharedMask | None = None,
) -> Sent:
    """The packet of ``delta + residual``, and the residual after it.

    ``delta`` holds the float tensors of ``layers``; what the residual holds of other layers waits
    there until they train again, by the rules. Where the sum moves a layer of ``before``, the
    published model, further than the server accepts, the residual of that layer is let go: it
    would come back with every refusal, and nothing of the board would be merged again.

    Raises:
        PacketError: a value is not finite, or a dense packet is over its budget.
    """
    missed = missed_rounds(settled.history, round_number)
    residual = waited(settled.residual, layout, rules, trained=layers, missed=missed)
    update = add({name: residual[name] for name in delta if name in residual}, delta)
    for wrong in too_far(update, layers, before, layout):
        _log.warning("what waited of %s is let go: %s", wrong.layer, wrong)
        update |= {t.name: delta[t.name] for t in layout[wrong.layer].tensors if t.name in delta}
    before_now = settled.history.ranges
    literal = settings.mode == "literal"
    ranges = value_ranges(before_now, update, layout, layers) if literal else before_now
    encoded = encode(
        update,
        layout,
        layers,
        budget_bytes=budget_bytes,
        round_number=round_number,
        settings=settings,
        floors=floors,
        importance=importance,
        positions=mask.positions(layout, layers) if mask else None,
        ranges=ranges,
    )
    left, lost = _kept({**residual, **subtract(update, encoded.decoded)}, rules.precision)
    pending = Pending(
        round_number,
        encoded.packet,
        packet_digest(encoded.packet),
        settled.residual,
        settled.history,
        settled.rounding_norm,
        mask,
    )
    carried = () if encoded.empty else layers
    since = _since(settled.history, layout, left, carried, round_number)
    history = History(round_number, since, ranges)
    lost += settled.rounding_norm
    return Sent(pending, left, history, lost, encoded.unmet_floors, encoded.widths)


def without_feedback(settled: Settled) -> Settled:
    """For a strategy that keeps no residual: whatever came back is let go."""
    return Settled({}, replace(settled.history, since={}), settled.outcome)


def _kept(residual: Arrays, precision: Precision) -> tuple[Arrays, float]:
    return halved(residual) if precision == "float16" else (residual, 0.0)


def _since(
    history: History, layout: Layout, left: Arrays, carried: Sequence[str], number: int
) -> dict[str, int]:
    """Only of layers of which something is left; what has no entry yet begins now."""
    held = [layer.name for layer in layout if any(t.name in left for t in layer.tensors)]
    return {name: number if name in carried else history.since.get(name, number) for name in held}
