"""The published model put together on a board, seen from the outside of its round."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save

from compression import CodecSettings, encode
from fedfreeze.errors import LayoutError, PacketError, ProtocolError
from fedfreeze.layer_digest import model_digest
from fedfreeze.messages import NO_ROUND
from strategies.chain import joined
from tests.unit.client_app.board_orders import (
    INITIAL,
    LAYOUT,
    files_of,
    first_order,
    play,
    refusal,
    stored,
    strategy,
)


@pytest.fixture
def order(tmp_path):
    return first_order(tmp_path)


# ---- layers


def test_only_the_layers_that_changed_need_to_come(order):
    play(order)
    head = {t.name: INITIAL[t.name] + 1 for t in LAYOUT["head"].tensors}
    reply = play(replace(order, round_number=2, model_version=1, base_version=0), save(head))
    assert reply.report.held_version == 1
    held = stored(order)
    assert held.model_version == 1
    for name, array in (INITIAL | head).items():
        assert np.array_equal(held.model[name], array)


def test_nothing_at_all_need_come_when_nothing_changed(order):
    play(order)
    reply = play(replace(order, round_number=2, model_version=0, base_version=0), b"")
    assert reply.report.status == "trained"


@pytest.mark.parametrize(
    ("rounds", "base", "held"), [(0, 3, "none"), (1, 3, "version 0"), (1, 7, "version 0")]
)
def test_a_board_that_lacks_the_base_says_so_and_keeps_what_it_has(order, rounds, base, held):
    if rounds:
        play(order)
    before = files_of(order)
    reply = play(replace(order, round_number=2, model_version=8, base_version=base), b"")
    assert reply.packet is None
    assert (reply.report.status, reply.report.held_version) == ("needs-model", NO_ROUND)
    assert reply.report.detail == f"expected version {base}, the board holds {held}"
    assert files_of(order) == before


def test_bytes_that_are_no_model_are_refused(order):
    assert refusal(ProtocolError, order, b"\x00" * 16).startswith(
        "the model that was sent is not a safetensors file: "
    )


def test_a_model_of_other_tensors_is_refused_by_name(order):
    wrong = INITIAL | {"head.1.bias": np.zeros(4, np.float32)}
    assert refusal(LayoutError, order, save(wrong)) == (
        "tensor 'head.1.bias': expected float32[3], the server sent float32[4]"
    )


# ---- packets


HEAD = [t.name for t in LAYOUT["head"].tensors]


def packet(version, value=0.5, budget_bytes=10**6):
    """Moves every value of the head by ``value``, exactly."""
    return encode(
        {name: np.full(INITIAL[name].shape, value, np.float32) for name in HEAD},
        LAYOUT,
        ["head"],
        budget_bytes=budget_bytes,
        round_number=version,
        settings=CodecSettings("dense", 8),
    ).packet


def led_on(times):
    """The initial model after packets of 0.5."""
    after = dict(INITIAL)
    for _ in range(times):
        after |= {name: after[name] + np.float32(0.5) for name in HEAD}
    return after


@pytest.fixture
def at_version_0(order):
    """An order for round 2 of a board that holds version 0, with packets on the way down."""
    text = strategy("compression.compression-ratio=1", 'compression.downlink="quantised"')
    first = replace(order, strategy=text)
    play(first)
    return replace(first, round_number=2, base_version=0)


def test_packets_lead_a_board_to_the_servers_version(at_version_0):
    order = replace(at_version_0, model_version=2, model_digest=model_digest(LAYOUT, led_on(2)))
    reply = play(order, joined([packet(1), packet(2)]), by_packets=True)
    assert (reply.report.status, reply.report.held_version) == ("trained", 2)
    held = stored(order)
    assert held.model_version == 2
    for name, array in led_on(2).items():
        assert held.model[name].tobytes() == array.tobytes()


def test_a_board_that_is_ahead_skips_the_packets_that_it_has_had(at_version_0):
    play(replace(at_version_0, model_version=1), joined([packet(1)]), by_packets=True)
    order = replace(at_version_0, round_number=3, model_version=2)
    reply = play(order, joined([packet(1), packet(2)]), by_packets=True)
    assert reply.report.held_version == 2
    assert stored(order).model[HEAD[0]].tobytes() == led_on(2)[HEAD[0]].tobytes()
    again = play(replace(order, round_number=4), joined([packet(1), packet(2)]), by_packets=True)
    assert again.report.held_version == 2
    assert stored(order).model[HEAD[0]].tobytes() == led_on(2)[HEAD[0]].tobytes()


def test_a_board_without_the_base_of_the_packets_says_so(order):
    text = strategy("compression.compression-ratio=1", 'compression.downlink="quantised"')
    late = replace(order, strategy=text, base_version=0, model_version=1)
    reply = play(late, joined([packet(1)]), by_packets=True)
    assert (reply.report.status, reply.packet) == ("needs-model", None)
    assert reply.report.detail == "expected version 0, the board holds none"


def test_a_board_that_comes_to_another_model_than_the_server_says_so_and_keeps_its_own(
    at_version_0,
):
    order = replace(at_version_0, model_version=1, model_digest="0" * 32)
    before = files_of(order)
    reply = play(order, joined([packet(1)]), by_packets=True)
    assert (reply.report.status, reply.report.held_version) == ("needs-model", NO_ROUND)
    assert reply.report.detail == (
        f"expected version 1 with the digest {'0' * 32}, "
        f"the board comes to {model_digest(LAYOUT, led_on(1))}"
    )
    assert files_of(order) == before


def test_layers_that_do_not_make_the_servers_model_are_noticed_too(order):
    play(order)
    later = replace(order, round_number=2, base_version=0, model_digest="0" * 32)
    assert play(later, b"").report.status == "needs-model"


@pytest.mark.parametrize(
    ("packets", "version", "problem"),
    [
        ([], 1, "expected 1 packets of the model, got 0"),
        ([1], 2, "expected 2 packets of the model, got 1"),
        ([1], 0, "expected from 1 to 100 packets to reach the server's version, got 0"),
        ([2, 1], 2, "expected the packet of version 1 of the model, got that of version 2"),
    ],
)
def test_a_chain_that_does_not_lead_there_is_refused(at_version_0, packets, version, problem):
    before = files_of(at_version_0)
    order = replace(at_version_0, model_version=version)
    with pytest.raises(ProtocolError) as caught:
        play(order, joined([packet(number) for number in packets]), by_packets=True)
    assert str(caught.value) == problem
    assert files_of(order) == before


def test_a_packet_over_the_budget_of_the_downlink_is_refused_before_it_is_read(order):
    """The sparse budget is a third of the dense model."""
    text = strategy(
        "compression.compression-ratio=1",
        'compression.downlink="sparse"',
        "compression.downlink-ratio=3",
    )
    first = replace(order, strategy=text)
    play(first)
    budget = sum(t.nbytes for t in LAYOUT.tensors.values() if t.travels) // 3
    with pytest.raises(ProtocolError) as caught:
        play(
            replace(first, round_number=2, base_version=0, model_version=1),
            joined([bytes(budget + 1)]),
            by_packets=True,
        )
    assert str(caught.value) == (
        f"packet 1 of 1 of the model: expected at most {budget} bytes, its length says {budget + 1}"
    )


def test_bytes_that_are_no_packet_are_refused(at_version_0):
    order = replace(at_version_0, model_version=1)
    before = files_of(order)
    with pytest.raises(PacketError):
        play(order, joined([bytes(100)]), by_packets=True)
    assert files_of(order) == before


def test_packets_are_refused_where_the_strategy_sends_layers(order):
    play(order)
    later = replace(order, round_number=2, base_version=0, model_version=1)
    with pytest.raises(ProtocolError) as caught:
        play(later, joined([packet(1)]), by_packets=True)
    assert str(caught.value) == (
        'got packets of the model from version 0 on, with downlink = "delta"; expected its layers'
    )


def test_packets_without_a_base_are_refused(at_version_0):
    with pytest.raises(ProtocolError) as caught:
        play(
            replace(at_version_0, base_version=NO_ROUND, model_version=1),
            joined([packet(1)]),
            by_packets=True,
        )
    assert str(caught.value) == (
        'got packets of the model from version -1 on, with downlink = "quantised"; '
        "expected its layers"
    )
