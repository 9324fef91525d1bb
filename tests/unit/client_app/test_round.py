"""One board's round, played on hand-written orders for a tiny task."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import RecordDict

from client_app.resources import Identity
from client_app.round import BoardRound, strategy_of
from client_app.store import BoardState, BoardStore, History
from compression import CodecSettings, Halves, decode, encode, packet_digest
from fedfreeze.errors import LayoutError, ProtocolError
from fedfreeze.messages import NO_LOSS, NO_ROUND, NO_TEXT, PACKET_FORMAT, packed
from fedfreeze.plan import Plan, Reason, Stage
from fedfreeze.wire_size import planned_bytes
from tests.tiny_task import EXAMPLES
from tests.unit.client_app.board_orders import (
    BLOB,
    LAYOUT,
    WHO,
    WHOLE,
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


def test_a_board_trains_the_plan_and_reports_what_it_did(order):
    reply = play(order)
    report = reply.report
    assert (report.status, report.detail, report.plan) == ("trained", "nothing", NO_TEXT)
    assert (report.device_id, report.round_number) == ("sim-0000", 1)
    assert (report.held_version, report.examples) == (0, EXAMPLES)
    assert len(reply.packet) <= 400
    assert report.packet_digest == packet_digest(reply.packet)
    decoded = decode(reply.packet, LAYOUT, max_bytes=400)
    assert (decoded.layers, decoded.round_number) == (LAYOUT.names, 1)
    measures = json.loads(report.measures)
    assert set(measures) == set(LAYOUT.names)
    assert all(norm > 0 and movement > 0 for norm, movement in measures.values())
    assert report.train_loss > 0
    residual = np.concatenate([a.ravel() for a in stored(order).residual.values()])
    assert report.residual_norm == pytest.approx(np.linalg.norm(residual.astype(np.float64)))


def test_the_losses_of_single_examples_are_reported_where_the_selection_reads_them(order, tmp_path):
    assert play(order).report.train_loss_rms == NO_LOSS
    read = strategy("compression.compression-ratio=1", "clients.selection=oort")
    reply = play(replace(order, strategy=read, state_dir=str(tmp_path / "a")))
    assert reply.report.train_loss_rms > reply.report.train_loss > 0
    assert reply.packet == play(order).packet


def test_the_same_order_again_gives_the_same_packet(order):
    """As after a crash of the server: neither training nor residual remembers the first time."""
    first, second = play(order), play(order)
    assert second.packet == first.packet
    assert (first.report.detail, second.report.detail) == ("nothing", "repeated")


def test_another_seed_or_device_or_round_trains_otherwise(order, tmp_path):
    base = play(order).packet
    seeded = strategy("compression.compression-ratio=1", "seed=1")
    others = [
        play(replace(order, strategy=seeded, state_dir=str(tmp_path / "a"))),
        play(replace(order, round_number=2, state_dir=str(tmp_path / "b"))),
        play(
            replace(order, device_id="sim-0001", state_dir=str(tmp_path / "c")),
            who=replace(WHO, device_id="sim-0001", index=1, clients=2),
        ),
    ]
    assert len({base, *(reply.packet for reply in others)}) == 4


def test_frozen_layers_are_in_neither_packet_nor_measures(order):
    plan = Plan(
        (Stage(1.0, ("head",)),),
        2,
        8,
        400,
        {name: Reason("score", "") for name in LAYOUT.names if name != "head"},
    )
    reply = play(replace(order, plan=json.dumps(plan.to_json())))
    assert decode(reply.packet, LAYOUT, max_bytes=400).layers == ("head",)
    assert set(json.loads(reply.report.measures)) == {"head"}


def test_with_a_dense_downlink_a_board_stores_no_model(order):
    text = strategy("compression.compression-ratio=1", 'compression.downlink="dense"')
    reply = play(replace(order, strategy=text))
    assert reply.report.held_version == NO_ROUND
    assert stored(order).model == {}


def test_a_torn_state_costs_the_residual_and_no_more(order, caplog):
    first = play(order)
    (Path(order.state_dir) / "boards/sim-0000/head.json").write_text("{")
    again = play(order)
    assert again.packet == first.packet
    assert again.report.detail == "nothing"
    assert "starting afresh" in caplog.text


def test_a_board_on_which_nothing_fits_sits_out_and_keeps_residual_and_packet(order):
    play(order)
    before = stored(order)
    slow = strategy("compression.compression-ratio=1", 'clients.round-deadline="1 ms"')
    later = replace(
        order,
        strategy=slow,
        round_number=2,
        accepted_round=1,
        accepted_digest=before.pending.digest,
        model_version=1,
    )
    reply = play(later)
    assert reply.packet is None
    assert reply.report.status == "sat-out"
    assert reply.report.detail.startswith("downlink: the transfers alone take ")
    assert reply.report.held_version == 1
    after = stored(order)
    assert after.pending.packet == before.pending.packet
    assert {n: a.tobytes() for n, a in after.residual.items()} == {
        n: a.tobytes() for n, a in before.residual.items()
    }
    third = play(replace(order, round_number=3, accepted_round=1, accepted_digest=NO_TEXT))
    assert third.report.detail == "returned"


def test_a_board_with_too_few_examples_for_the_model_sits_out(order):
    board = BoardRound(order, WHO)
    board.examples = board.examples.at(np.array([0]))
    reply = board.play(BLOB)
    assert reply.packet is None
    assert reply.report.status == "sat-out"
    assert reply.report.detail == (
        "examples: BatchNorm has no statistics of a single example, and 1 is all there is"
    )


def test_a_plan_with_a_smaller_budget_of_the_boards_own_is_reported(order):
    """The strategy allows a hundredth of the dense update, the suggestion claims more."""
    dense = sum(t.nbytes for t in LAYOUT.tensors.values() if t.is_float)
    reply = play(replace(order, strategy=strategy("compression.compression-ratio=10")))
    plan = Plan.from_json(json.loads(reply.report.plan))
    assert plan.upload_budget_bytes <= dense // 10 < WHOLE.upload_budget_bytes
    assert len(reply.packet) <= plan.upload_budget_bytes


@pytest.mark.parametrize("carried_bytes", range(2_000, 3_200, 100))
def test_packet_and_envelope_fit_the_uplink_together(order, carried_bytes):
    """The server takes the envelope for far too light; a plan of the board's own weighs more."""
    uplink = BoardRound(order, WHO).capacity.uplink_bytes_per_s.value
    suggested = replace(WHOLE, upload_budget_bytes=900)
    tight = replace(
        order,
        strategy=strategy(
            "compression.compression-ratio=1",
            f'compression.upload-time="{carried_bytes / uplink:.12f} s"',
            "residual.summary=true",
        ),
        plan=json.dumps(suggested.to_json()),
        envelope_bytes=100,
    )
    reply = play(tight)
    if reply.packet is None:
        assert carried_bytes < 2_700
        assert reply.report.detail.startswith("uplink: the uplink carries ")
        return
    content = RecordDict(
        {"report": reply.report.to_record(), "packet": packed(reply.packet, PACKET_FORMAT)}
    )
    assert planned_bytes(content) <= carried_bytes
    plan = suggested
    if reply.report.plan != NO_TEXT:
        plan = Plan.from_json(json.loads(reply.report.plan))
        assert plan.upload_budget_bytes < 900
    assert len(reply.packet) <= plan.upload_budget_bytes
    assert carried_bytes < 3_000 or plan.upload_budget_bytes > 200


def test_without_error_feedback_nothing_is_left_over(order):
    text = strategy("compression.compression-ratio=1", "compression.error-feedback=false")
    reply = play(replace(order, strategy=text))
    assert reply.report.residual_norm == 0.0
    assert stored(order).residual == {}


# ---- the life of the residual

FREEZING = Plan(
    (Stage(1.0, ("head",)),),
    2,
    8,
    400,
    {name: Reason("score", "") for name in LAYOUT.names if name != "head"},
)


def with_rules(order, *overrides, **changes):
    text = strategy("compression.compression-ratio=1", *overrides)
    return replace(order, strategy=text, **changes)


def layer_of(residual, layer):
    names = [t.name for t in LAYOUT[layer].tensors if t.name in residual]
    return {name: np.asarray(residual[name]) for name in names}


def test_the_residual_of_a_frozen_layer_decays_once_in_each_round_that_is_played(order):
    order = with_rules(order, 'residual.frozen="decay"', "residual.decay=0.5")
    play(order)
    begin = stored(order)
    later = replace(
        order,
        round_number=2,
        plan=json.dumps(FREEZING.to_json()),
        accepted_round=1,
        accepted_digest=begin.pending.digest,
    )
    play(later)
    play(later)  # the server died and does the round again
    for name, array in layer_of(stored(order).residual, LAYOUT.names[0]).items():
        assert np.array_equal(array, begin.residual[name] / 2)


def test_rounds_in_which_a_board_sat_out_count_as_missed(order):
    order = with_rules(order, 'residual.missed="decay"', "residual.decay=0.5")
    play(order)
    begin = stored(order)
    accepted = {"accepted_round": 1, "accepted_digest": begin.pending.digest}
    slow = with_rules(
        order,
        'residual.missed="decay"',
        "residual.decay=0.5",
        'clients.round-deadline="1 ms"',
        round_number=2,
        **accepted,
    )
    assert play(slow).report.status == "sat-out"
    play(replace(order, round_number=4, plan=json.dumps(FREEZING.to_json()), **accepted))
    for name, array in layer_of(stored(order).residual, LAYOUT.names[0]).items():
        assert np.array_equal(array, begin.residual[name] / 4)


def test_a_residual_in_float16_is_stored_so_and_what_rounding_lost_is_reported(order):
    exact = play(order)
    rounded = play(
        with_rules(order, 'residual.precision="float16"', state_dir=f"{order.state_dir}/float16")
    )
    assert rounded.packet == exact.packet
    assert exact.report.residual_rounding_norm == 0
    lost, norm = rounded.report.residual_rounding_norm, exact.report.residual_norm
    assert 0 < lost <= 2.0**-11 * norm * (1 + 1e-6)
    assert abs(rounded.report.residual_norm - norm) <= lost
    kept = stored(replace(order, state_dir=f"{order.state_dir}/float16")).residual
    assert isinstance(kept, Halves)


def test_the_summary_of_the_residual_is_sent_where_the_strategy_asks_for_it(order):
    assert play(order).report.residuals == "{}"
    order = with_rules(order, "residual.summary=true")
    play(replace(order, round_number=1))
    later = replace(
        order,
        round_number=3,
        plan=json.dumps(FREEZING.to_json()),
        accepted_round=1,
        accepted_digest=stored(order).pending.digest,
    )
    report = play(later).report
    residual, found = stored(order).residual, json.loads(report.residuals)
    assert list(found) == list(LAYOUT.names)
    assert [age for _, _, age in found.values()] == [2] * (len(LAYOUT.names) - 1) + [0]
    for layer, (norm, largest, _) in found.items():
        values = np.concatenate([a.ravel() for a in layer_of(residual, layer).values()])
        assert norm == pytest.approx(np.linalg.norm(values.astype(np.float64)), rel=1e-5)
        assert largest == pytest.approx(np.abs(values).max(), rel=1e-5)
    total = np.linalg.norm([norm for norm, _, _ in found.values()])
    assert report.residual_norm == pytest.approx(total, rel=1e-5)


def under_another_layout(order, residual):
    """What a board holds that last trained the run's model when its layout was another one."""
    BoardStore(Path(order.state_dir), order.device_id, run=order.run, fingerprint="another").commit(
        BoardState(residual, history=History(3, {"head": 3}))
    )


def test_after_a_change_of_layout_what_still_fits_is_taken_over_as_the_strategy_says(order):
    first = [t for t in LAYOUT[LAYOUT.names[0]].tensors if t.travels]
    fitting = {t.name: np.full(t.shape, 1024, np.float32) for t in first}
    foreign = {**fitting, "gone.w": np.ones(3, np.float32)}
    later = {"round_number": 4, "plan": json.dumps(FREEZING.to_json())}
    for rule, expected in (("keep", 1024), ("decay", 512), ("drop", None)):
        rules = [f'residual.layout-change="{rule}"']
        rules += ["residual.decay=0.5"] if rule == "decay" else []
        own = with_rules(order, *rules, state_dir=f"{order.state_dir}/{rule}", **later)
        under_another_layout(own, foreign)
        for _ in range(2):  # again, as after a crash of the server: it is taken over once
            assert play(own).report.status == "trained"
            left = stored(own).residual
            assert "gone.w" not in left
            of_layer = layer_of(left, LAYOUT.names[0])
            assert set(of_layer) == (set() if expected is None else set(fitting))
            assert all((array == expected).all() for array in of_layer.values())


def test_a_torn_state_of_another_layout_costs_no_more_than_itself(order, caplog):
    own = with_rules(order, 'residual.layout-change="keep"')
    under_another_layout(own, {"gone.w": np.ones(3, np.float32)})
    for blob in Path(order.state_dir).glob("boards/sim-0000/*"):
        if blob.name != "head.json":
            blob.write_bytes(b"rot")
    assert play(own).report.status == "trained"
    assert "starting afresh" in caplog.text


def test_a_board_with_few_examples_encodes_more_finely(order, monkeypatch):
    used = []

    def spy(*args, settings, **kwargs):
        used.append(settings)
        return encode(*args, settings=settings, **kwargs)

    monkeypatch.setattr("client_app.settling.encode", spy)
    few = ('compression.few-examples="finer-step"', f"compression.n-min={4 * EXAMPLES}")
    play(order)
    play(with_rules(order, *few, state_dir=f"{order.state_dir}/few"))
    assert used == [CodecSettings(), CodecSettings(fineness=2.0)]


def test_an_order_for_another_device_is_refused(order):
    assert refusal(ProtocolError, replace(order, device_id="sim-0001")) == (
        'the order is for "sim-0001", this is "sim-0000"; two nodes may share a device-id'
    )


def test_an_order_for_another_layout_is_refused(order):
    assert refusal(ProtocolError, replace(order, fingerprint="0123456789abcdef")) == (
        f"expected a model with the layout {LAYOUT.fingerprint}, the server has 0123456789abcdef; "
        "install the same release and the same task on both"
    )


def test_a_refused_order_touches_no_state(order):
    play(order)
    before = files_of(order)
    refusal(ProtocolError, replace(order, fingerprint="0"))
    refusal(ProtocolError, replace(order, plan="{"))
    refusal(LayoutError, order, b"")
    assert files_of(order) == before


def test_a_suggestion_that_is_no_json_is_refused(order):
    assert refusal(ProtocolError, replace(order, plan="{")) == "order.plan: expected JSON, got '{'"


def test_a_strategy_of_another_release_is_refused_with_the_fix():
    document = json.loads(strategy())
    document["local"]["sharpness"] = 1
    with pytest.raises(ProtocolError) as caught:
        strategy_of(json.dumps(document))
    assert str(caught.value) == (
        "the strategy that the server sent cannot be read here: local.sharpness: Extra inputs are "
        "not permitted; install the same release of FedFreeze on the server and on every board"
    )


def test_a_real_board_keeps_its_state_where_it_was_told_and_not_where_the_server_says(
    order, tmp_path
):
    who = Identity("cam", 0, 1, False, "rpi-5-8gb", str(tmp_path / "own"), None)
    play(replace(order, device_id="cam", state_dir=str(tmp_path / "servers")), who=who)
    assert (tmp_path / "own/boards/cam/head.json").is_file()
    assert not (tmp_path / "servers").exists()


@pytest.mark.parametrize("run", ["run-7", "../../run", ".."])
def test_a_real_board_that_was_told_nothing_keeps_its_state_in_its_home(
    order, tmp_path, monkeypatch, run
):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))
    who = Identity("cam", 0, 1, False, "rpi-5-8gb", None, None)
    play(replace(order, device_id="cam", run=run), who=who)
    assert [path.parents[2] for path in tmp_path.rglob("head.json")] == [tmp_path / "home/state"]
