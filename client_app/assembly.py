"""The published model on a board: what the board holds and what the server sent, put together."""

from __future__ import annotations

from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors

from client_app.initial import own_layers
from client_app.store import BoardState
from fedfreeze.errors import ProtocolError
from fedfreeze.layer_digest import model_digest
from fedfreeze.layout import Arrays, Layout
from fedfreeze.messages import NO_ROUND, NO_TEXT, TrainOrder, from_json
from strategies import schema
from strategies.chain import caught_up, parted
from strategies.downlink import packet_rule


class NoModelError(Exception):
    """The board does not come to the server's model; says why. The server must send all of it."""


def assembled(
    order: TrainOrder,
    strategy: schema.Strategy,
    layout: Layout,
    state: BoardState,
    came: bytes,
    *,
    by_packets: bool,
) -> Arrays:
    """Every tensor of the version that the order speaks of.

    Args:
        order: what the server asks.
        strategy: that it names.
        layout: of the model.
        state: of the board; its model is what ``came`` goes on top of.
        came: the layers that were sent along, or the packets that lead to the server's version.
        by_packets: which of the two.

    Raises:
        NoModelError: the board lacks what this goes on top of, or comes to another model.
        ProtocolError, PacketError, LayoutError: what came cannot be read, or leads elsewhere.
    """
    base = _base(order, strategy, layout, state)
    if by_packets:
        published = _led_on(order, strategy, layout, state.model_version, came=came, base=base)
    else:
        published = _covered(came, base, layout)
    _check_digest(order, layout, published)
    return published


def _base(
    order: TrainOrder, strategy: schema.Strategy, layout: Layout, state: BoardState
) -> Arrays:
    """What the layers or packets that were sent go on top of.

    All layers that changed after ``base_version`` came along, or all packets after it. A later
    version will do as well: a server that died in mid-round does not know that the board has
    taken it.
    """
    base, held = order.base_version, state.model_version
    if base == NO_ROUND:
        return {}
    has = "none" if held is None else f"version {held}"
    if held is not None:
        if base <= held <= order.model_version:
            return state.model
    elif order.initial != NO_TEXT:
        own = own_layers(strategy, _named(order.initial, layout))
        if own is not None:
            return own
    if order.initial != NO_TEXT:
        has += ", and not the pretrained layers that were named"
    raise NoModelError(f"expected version {base}, the board holds {has}")


def _named(text: str, layout: Layout) -> dict[str, str]:
    named = from_json("order.initial", text)
    if not isinstance(named, dict) or not all(isinstance(v, str) for v in named.values()):
        raise ProtocolError(f"order.initial: expected digests by layer, got {text!r:.80}")
    return {layer: named[layer] for layer in layout.ordered(named)}


def _led_on(
    order: TrainOrder,
    strategy: schema.Strategy,
    layout: Layout,
    held: int | None,
    *,
    came: bytes,
    base: Arrays,
) -> Arrays:
    """``base`` after the packets of the versions that it lacks."""
    rule = packet_rule(layout, strategy.compression)
    if rule is None or order.base_version == NO_ROUND:
        raise ProtocolError(
            f"got packets of the model from version {order.base_version} on, with downlink = "
            f'"{strategy.compression.downlink}"; expected its layers'
        )
    count = order.model_version - order.base_version
    packets = parted(came, count, max_bytes=rule.budget_bytes)
    # A board that is ahead of what the server believes has had the first of them.
    held = order.base_version if held is None else held
    lacking = packets[held - order.base_version :]
    return caught_up(base, lacking, held, layout, max_bytes=rule.budget_bytes)


def _covered(blob: bytes, base: Arrays, layout: Layout) -> Arrays:
    """``base`` under the layers that came."""
    try:
        came = load_safetensors(blob) if blob else {}
    except SafetensorError as error:
        raise ProtocolError(
            f"the model that was sent is not a safetensors file: {error}"
        ) from error
    arrays = {**base, **came}
    layout.check(arrays, sender="the server")
    return arrays


def _check_digest(order: TrainOrder, layout: Layout, published: Arrays) -> None:
    """Nothing to check if all of the model came.

    A version number alone does not tell: a server that fell back to an older checkpoint may
    have published another model under the same number.
    """
    expected = order.model_digest
    if expected == NO_TEXT or (has := model_digest(layout, published)) == expected:
        return
    raise NoModelError(
        f"expected version {order.model_version} with the digest {expected}, "
        f"the board comes to {has}"
    )
