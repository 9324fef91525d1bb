"""The four ways in which a packet can be settled, and what sending one leaves behind."""

import numpy as np
import pytest

from client_app.settling import send, settle
from client_app.store import BoardState, Pending
from compression import EMPTY_PACKET_BYTES, CodecSettings, decode, encode, packet_digest
from fedfreeze.errors import PacketError
from fedfreeze.layout import Layer, Layout, TensorSpec

LAYOUT = Layout(
    "m",
    (
        Layer("a", (TensorSpec("a.w", (40,), "float32"),)),
        Layer(
            "b",
            (TensorSpec("b.w", (40,), "float32"), TensorSpec("b.m", (2,), "float32", "buffer")),
        ),
    ),
)
DENSE, SPARSE = CodecSettings("dense"), CodecSettings()
BEFORE = {"a.w": np.full(40, 0.25, np.float32)}
AFTER = {"a.w": np.full(40, 0.5, np.float32), "b.w": np.full(40, -2, np.float32)}
SENT = {"a.w": np.linspace(0, 3, 40, dtype=np.float32)}


@pytest.fixture
def state():
    packet = encode(SENT, LAYOUT, ["a"], budget_bytes=999, round_number=4, settings=DENSE).packet
    pending = Pending(4, packet, packet_digest(packet), BEFORE)
    return BoardState(residual=AFTER, pending=pending)


def settled(state, **kwargs):
    residual, outcome = settle(state, LAYOUT, **kwargs)
    return {name: array.tolist() for name, array in residual.items()}, outcome


def listed(arrays):
    return {name: array.tolist() for name, array in arrays.items()}


def test_a_board_that_sent_nothing_goes_on_with_its_residual():
    assert settled(BoardState(residual=AFTER), round_number=5, accepted=None) == (
        listed(AFTER),
        "nothing",
    )


def test_an_accepted_packet_leaves_the_residual_as_it_is(state):
    accepted = (4, state.pending.digest)
    assert settled(state, round_number=5, accepted=accepted) == (listed(AFTER), "accepted")


@pytest.mark.parametrize("accepted", [None, (-1, "-"), (3, "older"), (4, "other"), (5, "newer")])
def test_a_packet_that_was_not_merged_is_added_to_the_residual_again(state, accepted):
    expected = {"a.w": (AFTER["a.w"] + SENT["a.w"]).tolist(), "b.w": AFTER["b.w"].tolist()}
    assert settled(state, round_number=6, accepted=accepted) == (expected, "returned")


def test_the_digest_of_an_accepted_packet_counts_only_with_its_round(state):
    accepted = (3, state.pending.digest)
    assert settled(state, round_number=6, accepted=accepted)[1] == "returned"


def test_a_round_that_is_done_again_starts_from_the_residual_before_it(state):
    for accepted in (None, (4, state.pending.digest)):
        assert settled(state, round_number=4, accepted=accepted) == (listed(BEFORE), "repeated")


def sent(delta, residual, layers=("a",), budget_bytes=10_000, settings=DENSE):
    return send(
        delta,
        residual,
        LAYOUT,
        layers,
        budget_bytes=budget_bytes,
        round_number=7,
        settings=settings,
    )


def test_a_packet_carries_what_was_trained_and_what_was_left_over():
    delta = {"a.w": np.ones(40, np.float32)}
    pending, left = sent(delta, AFTER)
    decoded = decode(pending.packet, LAYOUT, max_bytes=10_000)
    assert decoded.round_number == pending.round_number == 7
    assert listed(decoded.update) == {"a.w": [1.5] * 40}
    assert pending.digest == packet_digest(pending.packet)
    assert listed(pending.residual_before) == listed(AFTER)
    assert listed(left) == {"a.w": [0.0] * 40, "b.w": AFTER["b.w"].tolist()}


def test_what_a_sparse_packet_leaves_out_stays_in_the_residual():
    delta = {"a.w": np.linspace(-1, 1, 40, dtype=np.float32)}
    pending, left = sent(delta, {}, budget_bytes=60, settings=SPARSE)
    decoded = decode(pending.packet, LAYOUT, max_bytes=60).update["a.w"]
    assert 0 < np.count_nonzero(decoded) < 40
    assert np.array_equal(left["a.w"], delta["a.w"] - decoded)


def test_the_residual_of_a_layer_that_is_frozen_now_waits():
    delta = {"a.w": np.ones(40, np.float32)}
    pending, left = sent(delta, AFTER)
    assert "b.w" not in decode(pending.packet, LAYOUT, max_bytes=10_000).update
    assert np.array_equal(left["b.w"], AFTER["b.w"])


def test_with_no_room_for_a_value_the_residual_keeps_all():
    delta = {"a.w": np.ones(40, np.float32)}
    pending, left = sent(delta, {}, budget_bytes=0, settings=SPARSE)
    assert len(pending.packet) == EMPTY_PACKET_BYTES
    assert listed(left) == listed(delta)


def test_an_update_that_is_not_finite_is_refused():
    delta = {"a.w": np.full(40, np.nan, np.float32)}
    with pytest.raises(PacketError):
        sent(delta, {})
