"""One board's round, played on hand-written orders for a tiny task."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from client_app.resources import Identity
from client_app.round import BoardRound, strategy_of
from client_app.store import BoardStore
from compression import decode, packet_digest
from device_profiles.fleet import fleet_text
from fedfreeze.errors import LayoutError, ProtocolError
from fedfreeze.messages import NO_ROUND, NO_TEXT, PROTOCOL, TrainOrder
from fedfreeze.plan import Plan, Reason, Stage
from strategies import schema
from tasks.task import initial_arrays
from tests.tiny_task import EXAMPLES, task

LAYOUT = task.layout()
WHO = Identity("sim-0000", 0, 1, True, None, None, None)
INITIAL = initial_arrays(task, 0)
BLOB = save(INITIAL)
WHOLE = Plan((Stage(1.0, LAYOUT.names),), 2, 8, 400)


def strategy(*overrides):
    toml = 'version = 1\nrounds = 9\ntask = "tests.tiny_task"\nfleet = "high"'
    return schema.from_text(toml, overrides=overrides).model_dump_json(by_alias=True)


@pytest.fixture
def order(tmp_path):
    return TrainOrder(
        protocol=PROTOCOL,
        run="run",
        round_number=1,
        device_id="sim-0000",
        fingerprint=LAYOUT.fingerprint,
        strategy=strategy("compression.compression-ratio=1"),
        fleet=fleet_text("high"),
        plan=json.dumps(WHOLE.to_json()),
        model_version=0,
        base_version=NO_ROUND,
        accepted_round=NO_ROUND,
        accepted_digest=NO_TEXT,
        envelope_bytes=2_000,
        state_dir=str(tmp_path),
        data_dir=NO_TEXT,
        initial=NO_TEXT,
    )


def play(order, blob=BLOB, who=WHO):
    return BoardRound(order, who).play(blob)


def stored(order):
    return BoardStore(
        Path(order.state_dir), order.device_id, run=order.run, fingerprint=LAYOUT.fingerprint
    ).load()


def files_of(order):
    return sorted(path.name for path in Path(order.state_dir).rglob("*"))


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


def test_without_error_feedback_nothing_is_left_over(order):
    text = strategy("compression.compression-ratio=1", "compression.error-feedback=false")
    reply = play(replace(order, strategy=text))
    assert reply.report.residual_norm == 0.0
    assert stored(order).residual == {}


def refusal(error, order, blob=BLOB, who=WHO):
    with pytest.raises(error) as caught:
        play(order, blob, who)
    return str(caught.value)


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


def test_bytes_that_are_no_model_are_refused(order):
    assert refusal(ProtocolError, order, b"\x00" * 16).startswith(
        "the model that was sent is not a safetensors file: "
    )


def test_a_model_of_other_tensors_is_refused_by_name(order):
    wrong = INITIAL | {"head.1.bias": np.zeros(4, np.float32)}
    assert refusal(LayoutError, order, save(wrong)) == (
        "tensor 'head.1.bias': expected float32[3], the server sent float32[4]"
    )


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
