"""The four ways in which a packet can be settled, and what sending one leaves behind."""

import numpy as np
import pytest

from client_app.settling import Settled, send, settle, without_feedback
from client_app.store import BoardState, History, Pending
from compression import (
    EMPTY_PACKET_BYTES,
    CodecSettings,
    Halves,
    SharedMask,
    decode,
    encode,
    halved,
    packet_digest,
)
from fedfreeze.errors import PacketError
from fedfreeze.layout import Layer, Layout, TensorSpec
from strategies.tables import Residual

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
HISTORY, HISTORY_BEFORE = History(4, {"a": 4, "b": 2}), History(2, {"a": 1, "b": 2})


@pytest.fixture
def state():
    packet = encode(SENT, LAYOUT, ["a"], budget_bytes=999, round_number=4, settings=DENSE).packet
    pending = Pending(4, packet, packet_digest(packet), BEFORE, HISTORY_BEFORE)
    return BoardState(residual=AFTER, pending=pending, history=HISTORY)


def settled(state, **kwargs):
    found = settle(state, LAYOUT, **kwargs)
    return listed(found.residual), found.outcome


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


@pytest.mark.parametrize(
    ("number", "accepted", "history"),
    [
        (6, True, HISTORY),
        # The layer that the lost packet carried is as old as it was before.
        (6, False, History(4, {"a": 1, "b": 2})),
        (4, False, HISTORY_BEFORE),
    ],
    ids=["accepted", "returned", "repeated"],
)
def test_the_ages_of_layers_are_settled_with_the_packet(state, number, accepted, history):
    merged = (4, state.pending.digest) if accepted else None
    assert settle(state, LAYOUT, round_number=number, accepted=merged).history == history


def test_in_float16_what_came_back_is_rounded_and_the_loss_is_said(state):
    found = settle(state, LAYOUT, round_number=6, accepted=None, precision="float16")
    exact = {"a.w": AFTER["a.w"] + SENT["a.w"], "b.w": AFTER["b.w"]}
    assert isinstance(found.residual, Halves)
    lost = np.concatenate([(found.residual[n] - exact[n]).astype(np.float64) for n in exact])
    assert found.rounding_norm == pytest.approx(np.linalg.norm(lost))
    norm = np.linalg.norm(np.concatenate([*exact.values()]).astype(np.float64))
    assert 0 < found.rounding_norm <= 2.0**-11 * norm * (1 + 1e-6)


def test_in_float16_a_residual_that_stands_is_not_rounded_again(state):
    kept, _ = halved(AFTER)
    for accepted, number in (((4, state.pending.digest), 6), (None, 4)):
        halves = BoardState(
            kept, Pending(4, state.pending.packet, state.pending.digest, kept), history=HISTORY
        )
        found = settle(halves, LAYOUT, round_number=number, accepted=accepted, precision="float16")
        assert found.residual is kept
        assert found.rounding_norm == 0


def sent_by(
    settled,
    delta,
    *,
    layers=("a",),
    number=7,
    budget_bytes=10_000,
    settings=DENSE,
    floors=None,
    mask=None,
    **rules,
):
    return send(
        delta,
        settled,
        LAYOUT,
        layers,
        budget_bytes=budget_bytes,
        round_number=number,
        settings=settings,
        rules=Residual(**rules),
        before={t.name: np.ones(t.shape, np.float32) for t in LAYOUT.tensors.values()},
        floors=floors or {},
        mask=mask,
    )


def sent(delta, residual, **kwargs):
    left = sent_by(Settled(residual, History(), "nothing"), delta, **kwargs)
    return left.pending, left.residual


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


def test_a_residual_that_the_server_would_refuse_for_ever_is_let_go(caplog):
    # A layer of forty ones may move by 1e3 * (sqrt(40) + 1).
    poison = {"a.w": np.full(40, 1e6, np.float32), "b.w": AFTER["b.w"]}
    delta = {"a.w": np.ones(40, np.float32)}
    pending, left = sent(delta, poison)
    assert listed(decode(pending.packet, LAYOUT, max_bytes=10_000).update) == listed(delta)
    assert listed(left) == {"a.w": [0.0] * 40, "b.w": AFTER["b.w"].tolist()}
    (message,) = caplog.messages
    assert message == (
        "what waited of a is let go: layer 'a': expected an update of a norm up to 7.32e+03, "
        "got 6.32e+06"
    )


def test_a_floor_that_the_budget_cannot_hold_is_said():
    delta = {"a.w": np.linspace(-2, 2, 40, dtype=np.float32)}
    begin = Settled({}, History(), "nothing")
    tight = sent_by(begin, delta, budget_bytes=45, settings=SPARSE, floors={"a": 40})
    ample = sent_by(begin, delta, budget_bytes=900, settings=SPARSE, floors={"a": 40})
    assert (tight.unmet_floors, ample.unmet_floors) == (("a",), ())


# ---- the rules for what waits

ONES = {"a.w": np.ones(40, np.float32)}
BEGIN = Settled(AFTER, HISTORY, "accepted")


def test_the_rules_come_after_settling_and_before_the_update_is_added():
    """a missed rounds 5 and 6 and then trains, b missed them and is frozen: 0.5^2 and 0.5^3."""
    left = sent_by(BEGIN, ONES, frozen="decay", missed="decay", decay=0.5)
    decoded = decode(left.pending.packet, LAYOUT, max_bytes=10_000).update
    assert listed(decoded) == {"a.w": [0.5 * 0.25 + 1] * 40}
    assert listed(left.residual) == {"a.w": [0.0] * 40, "b.w": [-2 * 0.125] * 40}


def test_a_round_that_is_done_again_starts_before_the_rules():
    left = sent_by(BEGIN, ONES, frozen="decay", missed="decay", decay=0.5)
    state = BoardState(left.residual, left.pending, history=left.history)
    again = settle(state, LAYOUT, round_number=7, accepted=None)
    second = sent_by(again, ONES, frozen="decay", missed="decay", decay=0.5)
    assert second.pending.packet == left.pending.packet
    assert listed(second.residual) == listed(left.residual)
    assert second.history == left.history


def test_what_rounding_lost_in_settling_is_known_when_the_round_is_done_again(state):
    found = settle(state, LAYOUT, round_number=6, accepted=None, precision="float16")
    left = sent_by(found, ONES, number=6, precision="float16")
    stored = BoardState(left.residual, left.pending, history=left.history)
    again = settle(stored, LAYOUT, round_number=6, accepted=None, precision="float16")
    assert again.rounding_norm == found.rounding_norm > 0
    assert sent_by(again, ONES, number=6, precision="float16").rounding_norm == left.rounding_norm


def test_a_packet_that_came_back_is_returned_before_it_decays(state):
    found = settle(state, LAYOUT, round_number=6, accepted=None)
    delta = {"b.w": ONES["a.w"], "b.m": ONES["a.w"][:2]}
    left = sent_by(found, delta, layers=("b",), number=6, missed="decay", decay=0.5)
    assert listed(left.residual)["a.w"] == (0.5 * (AFTER["a.w"] + SENT["a.w"])).tolist()


def test_what_is_dropped_is_in_neither_packet_nor_residual_nor_history():
    left = sent_by(BEGIN, ONES, number=5, frozen="drop")
    assert listed(left.residual) == {"a.w": [0.0] * 40}
    assert left.history == History(5, {"a": 5})
    left = sent_by(BEGIN, ONES, number=6, missed="drop")
    assert listed(decode(left.pending.packet, LAYOUT, max_bytes=10_000).update) == listed(ONES)
    assert left.history == History(6, {"a": 6})


def test_a_board_that_missed_no_round_or_never_trained_has_missed_nothing():
    for history, number in ((HISTORY, 5), (History(), 9)):
        left = sent_by(Settled(AFTER, history, "accepted"), ONES, number=number, missed="drop")
        assert listed(left.residual) == {"a.w": [0.0] * 40, "b.w": AFTER["b.w"].tolist()}


# ---- ages


def test_a_layer_that_a_packet_carries_is_new_and_others_keep_their_age():
    assert sent_by(BEGIN, ONES).history == History(7, {"a": 7, "b": 2})


def test_an_empty_packet_carries_no_layer():
    left = sent_by(BEGIN, ONES, budget_bytes=0, settings=SPARSE)
    assert left.history == History(7, {"a": 4, "b": 2})
    fresh = Settled({}, History(), "nothing")
    assert sent_by(fresh, ONES, budget_bytes=0, settings=SPARSE).history == History(7, {"a": 7})


def test_without_feedback_what_came_back_is_let_go(state):
    found = without_feedback(settle(state, LAYOUT, round_number=6, accepted=None))
    assert (found.residual, found.history, found.outcome) == ({}, History(4), "returned")


# ---- float16


def test_in_float16_the_residual_is_rounded_after_all_and_the_loss_is_said():
    delta = {"a.w": np.linspace(-1, 1, 40, dtype=np.float32)}
    exact = sent_by(BEGIN, delta, budget_bytes=60, settings=SPARSE)
    left = sent_by(BEGIN, delta, budget_bytes=60, settings=SPARSE, precision="float16")
    assert left.pending.packet == exact.pending.packet
    assert isinstance(left.residual, Halves)
    lost = left.residual["a.w"].astype(np.float64) - exact.residual["a.w"]
    assert left.rounding_norm == pytest.approx(np.linalg.norm(lost))
    assert 0 < left.rounding_norm <= 2.0**-11 * np.linalg.norm(exact.residual["a.w"])
    assert exact.rounding_norm == 0


# ---- how large a layer's values have lately been

LITERAL = CodecSettings("literal")
LOUD = {"a.w": np.full(40, 8, np.float32)}
QUIET = {"a.w": np.where(np.arange(40) % 2, 1, -1).astype(np.float32)}


def test_literal_packets_remember_the_range_of_every_layer_that_was_trained():
    begin = Settled({}, History(6, ranges={"a": 20.0, "b": 3.0}), "accepted")
    # 0.9 x 20 in the first round, 0.9 x 18 in the next.
    first = sent_by(begin, LOUD, settings=LITERAL)
    assert first.history.ranges == {"a": 18.0, "b": 3.0}
    second = sent_by(Settled({}, first.history, "accepted"), QUIET, settings=LITERAL)
    assert second.history.ranges["a"] == pytest.approx(16.2)


def test_a_layer_that_was_loud_is_sent_with_more_bits_than_one_that_never_was():
    # Forty values of size 1: R / L <= sqrt(12) / 10 holds for R = 1 with L = 7, a width of 4, and
    # for R = 16.2 only with L = 127.
    calm = sent_by(Settled({}, History(), "nothing"), QUIET, settings=LITERAL)
    was_loud = Settled({}, History(6, ranges={"a": 18.0}), "accepted")
    assert (calm.widths, sent_by(was_loud, QUIET, settings=LITERAL).widths) == ({"a": 4}, {"a": 8})


def test_other_modes_leave_ranges_as_they_were():
    begin = Settled({}, History(6, ranges={"a": 20.0}), "accepted")
    found = sent_by(begin, LOUD, settings=SPARSE)
    assert (found.history.ranges, found.widths) == ({"a": 20.0}, {})


def test_a_round_that_is_done_again_starts_from_the_ranges_before_it():
    begin = Settled({}, History(6, ranges={"a": 20.0}), "accepted")
    first = sent_by(begin, LOUD, settings=LITERAL)
    state = BoardState(first.residual, first.pending, history=first.history)
    again = settle(state, LAYOUT, round_number=7, accepted=None)
    assert again.history.ranges == {"a": 20.0}
    assert sent_by(again, LOUD, settings=LITERAL).pending.packet == first.pending.packet
    # A packet that was lost was meant to be sent all the same.
    assert settle(state, LAYOUT, round_number=8, accepted=None).history.ranges == {"a": 18.0}


def test_without_feedback_ranges_are_remembered_too():
    begin = Settled(AFTER, History(6, {"a": 2}, {"a": 20.0}), "returned")
    assert without_feedback(begin).history == History(6, {}, {"a": 20.0})


# ---- positions that both ends draw

MASK = SharedMask(seed=5, round_number=7, share=1 << 31)


def sent_over_mask(residual):
    delta = {"a.w": np.linspace(-1, 2, 40, dtype=np.float32)}
    begin = Settled(residual, History(), "nothing")
    return delta, sent_by(begin, delta, settings=SPARSE, budget_bytes=80, mask=MASK)


def test_a_packet_over_a_shared_mask_carries_its_values_and_leaves_the_others():
    delta, left = sent_over_mask(AFTER)
    positions = MASK.positions(LAYOUT, ["a"])
    decoded = decode(left.pending.packet, LAYOUT, max_bytes=80, positions=positions).update["a.w"]
    inside = np.isin(np.arange(40), positions["a.w"])
    update = AFTER["a.w"] + delta["a.w"]
    assert inside.sum() == 20
    assert not decoded[~inside].any()
    assert np.array_equal(left.residual["a.w"], update - decoded)
    assert np.abs(left.residual["a.w"])[inside].max() < 0.1 * np.abs(update).max()


@pytest.mark.parametrize("number", [8, 12])
def test_a_packet_over_a_shared_mask_comes_back_with_the_mask_of_its_own_round(number):
    delta, left = sent_over_mask({})
    state = BoardState(left.residual, left.pending, history=left.history)
    again = settle(state, LAYOUT, round_number=number, accepted=None)
    assert again.outcome == "returned"
    assert np.allclose(again.residual["a.w"], delta["a.w"], rtol=0, atol=2.0**-22)
