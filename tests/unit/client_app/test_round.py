"""One board's round, played on hand-written orders for a tiny task."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from client_app.resources import Identity
from client_app.round import BoardRound, strategy_of
from client_app.store import BoardState, BoardStore, History
from compression import CodecSettings, Halves, decode, encode, packet_digest
from device_profiles.fleet import fleet_text
from fedfreeze.errors import LayoutError, PacketError, ProtocolError
from fedfreeze.layer_digest import model_digest
from fedfreeze.messages import NO_ROUND, NO_TEXT, PROTOCOL, TrainOrder
from fedfreeze.plan import Plan, Reason, Stage
from strategies import schema
from strategies.chain import joined
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


def play(order, blob=BLOB, who=WHO, *, by_packets=False):
    return BoardRound(order, who).play(blob, by_packets=by_packets)


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


# ---- packets of the published model


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
