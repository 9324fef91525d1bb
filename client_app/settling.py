"""What becomes of a packet that was sent: the error-feedback ledger of a board.

After every round the board holds ``residual = what it meant to send - decode(packet)``, which is
right if the server merged the packet. The next order says which packet of this board was merged
last, and the residual is settled by it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from client_app.store import BoardState, Pending
from compression import CodecSettings, add, decode, encode, packet_digest, subtract
from fedfreeze.layout import Arrays, Layout

Outcome = Literal["nothing", "accepted", "returned", "repeated"]


def settle(
    state: BoardState, layout: Layout, *, round_number: int, accepted: tuple[int, str] | None
) -> tuple[Arrays, Outcome]:
    """The residual with which round ``round_number`` begins, and how it came about.

    - ``accepted``: the pending packet is the one that was merged; the residual stands.
    - ``returned``: it was late, lost, or its round was void; ``residual += decode(packet)``, so
      that nothing the board has learned is lost.
    - ``repeated``: the server does the packet's own round again after a crash; the residual from
      before that round comes back, so that the round's work does not count twice.
    """
    pending = state.pending
    if pending is None:
        return state.residual, "nothing"
    if pending.round_number == round_number:
        return pending.residual_before, "repeated"
    if accepted == (pending.round_number, pending.digest):
        return state.residual, "accepted"
    returned = decode(pending.packet, layout, max_bytes=len(pending.packet))
    return add(state.residual, returned.update), "returned"


def send(
    delta: Arrays,
    residual: Arrays,
    layout: Layout,
    layers: Sequence[str],
    *,
    budget_bytes: int,
    round_number: int,
    settings: CodecSettings,
) -> tuple[Pending, Arrays]:
    """The packet of ``delta + residual``, and the residual after it.

    ``delta`` holds the float tensors of ``layers``; what the residual holds of other layers waits
    there until they train again.

    Raises:
        PacketError: a value is not finite, or a dense packet is over its budget.
    """
    update = add({name: residual[name] for name in delta if name in residual}, delta)
    encoded = encode(
        update,
        layout,
        layers,
        budget_bytes=budget_bytes,
        round_number=round_number,
        settings=settings,
    )
    pending = Pending(round_number, encoded.packet, packet_digest(encoded.packet), residual)
    return pending, {**residual, **subtract(update, encoded.decoded)}
