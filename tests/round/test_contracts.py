"""What must always hold, seen from the outside of a whole round on an in-process grid."""

from __future__ import annotations

import json
from dataclasses import replace
from math import nan

import numpy as np
import pytest
from safetensors.numpy import load_file

from compression import decode
from fedfreeze.errors import FleetError, StateError
from server_app.evaluation import Score
from server_app.round import Scores
from tests import tiny_half, tiny_task
from tests.conftest import records
from tests.grid import FIRST_NODE
from tests.round.held_models import held_by, model_of


def test_two_runs_with_the_same_seed_give_the_same_model_bytes(small_run):
    first, second = small_run(name="one"), small_run(name="two")
    first.play()
    second.play()
    assert model_of(first) == model_of(second)
    saved = load_file(first.folder.model)
    assert {name: array.tobytes() for name, array in saved.items()} == model_of(first)


def test_another_seed_gives_another_model(small_run):
    first, second = small_run(name="one"), small_run("seed=1", name="two")
    first.play()
    second.play()
    assert model_of(first) != model_of(second)


def test_a_run_that_was_stopped_after_round_3_and_resumed_equals_one_that_was_not(small_run):
    whole = small_run("rounds=6", "freeze.warm-up-rounds=1", name="whole")
    whole.play()
    small_run("rounds=6", "freeze.warm-up-rounds=1", name="cut").play(until=3)
    resumed = small_run("rounds=6", "freeze.warm-up-rounds=1", name="cut", resume=True)
    resumed.play()
    assert model_of(resumed) == model_of(whole)
    kept = ("round", "test_accuracy", "upload_bytes", "frozen_share", "simulated_total_s")
    for of_resumed, of_whole in zip(records(resumed.folder), records(whole.folder), strict=True):
        assert {k: of_resumed[k] for k in kept} == {k: of_whole[k] for k in kept}


@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_boards_on_the_edge_of_their_memory_are_planned_alike_after_a_stop(small_run, stop):
    """Their capacity moves with each round, and decides on a layer; no plan may see another one."""
    wanted = ("rounds=5", "fleet=low", "clients.quorum=0.1")
    whole = small_run(*wanted, name="whole")
    whole.play()
    small_run(*wanted, name="cut").play(until=stop)
    resumed = small_run(*wanted, name="cut", resume=True)
    resumed.play()
    assert model_of(resumed) == model_of(whole)
    capacities = [
        [(r["round"], r["device_id"], r["capacity"]) for r in records(run.folder, "decisions")]
        for run in (resumed, whole)
    ]
    assert capacities[0] == capacities[1]


class Killed(BaseException):
    """Stands for the death of the server's process."""


def test_a_server_that_dies_in_mid_round_loses_at_most_that_round(small_run):
    """Two boards have trained round 4 and hold its packet when the server dies."""
    whole = small_run("rounds=5", name="whole")
    whole.play()

    def die(message):
        order = message.content.get("order")
        if order is not None and order["round_number"] == 4 and order["device_id"] == "sim-0002":
            raise Killed

    cut = small_run("rounds=5", name="cut", grid={"on_order": die})
    with pytest.raises(Killed):
        cut.play()
    assert held_by(cut, 0).pending.round_number == 4
    resumed = small_run("rounds=5", name="cut", resume=True)
    resumed.play()
    assert model_of(resumed) == model_of(whole)
    assert [record["round"] for record in records(resumed.folder)] == [1, 2, 3, 4, 5]


def test_a_board_that_is_ahead_of_a_revived_server_is_not_sent_the_whole_model(small_run):
    """The weakest board freezes its first layers, so each round brings it only a part."""
    wanted = ("rounds=4", "fleet=low")
    whole = small_run(*wanted, nodes=1, name="whole")
    whole.play()

    cut = small_run(*wanted, nodes=1, name="cut")
    cut.play(until=2)

    def die_after_training(reply):
        raise Killed

    cut.grid.on_reply = die_after_training
    with pytest.raises(Killed):
        cut.play(until=3)
    assert held_by(cut, 0).model_version == 2
    resumed = small_run(*wanted, nodes=1, name="cut", resume=True)
    resumed.play()
    assert all("failures" not in record for record in records(resumed.folder))
    assert model_of(resumed) == model_of(whole)


def test_the_order_of_arrival_does_not_change_a_bit(small_run):
    straight = small_run(name="straight")
    turned = small_run(name="turned", grid={"reply_order": lambda replies: replies[::-1]})
    straight.play()
    turned.play()
    assert model_of(straight) == model_of(turned)


def test_what_a_board_sent_in_vain_is_in_its_residual_again(small_run):
    """Device 0's reply of round 2 is lost: the next round's ledger must hold what it carried."""
    lost = {}

    def lose(reply):
        report = reply.content.get("report")
        if report.get("round_number") == 2 and report["device_id"] == "sim-0000":
            lost["packet"] = reply.content["packet"]["packed"].data
            return None
        return reply

    run = small_run('clients.round-timeout="1 s"', grid={"on_reply": lose})
    run.play(until=2)
    before = held_by(run, 0)
    assert before.pending.packet == lost["packet"]
    assert records(run.folder)[1]["clients_failed"] == 1
    run.play(until=3)
    after = held_by(run, 0)
    layout = run.strategy.layout
    sent = decode(lost["packet"], layout, max_bytes=10**6).update
    for name, array in after.pending.residual_before.items():
        expected = before.residual.get(name, 0) + sent.get(name, np.zeros_like(array))
        assert np.array_equal(array, expected.astype(np.float32)), name


@pytest.mark.parametrize("stop", [2, 4])
def test_a_stopped_run_equals_one_that_was_not_whatever_becomes_of_residuals(small_run, stop):
    """Boards take part by chance, freeze, decay what waits, and keep it in float16."""
    wanted = (
        "rounds=6",
        "freeze.warm-up-rounds=1",
        'clients.selection="uniform"',
        "clients.share=0.5",
        'residual.frozen="decay"',
        'residual.missed="decay"',
        'residual.precision="float16"',
        "residual.summary=true",
        'compression.few-examples="damped-weight"',
        "compression.n-min=600",
    )
    whole = small_run(*wanted, nodes=6, name="whole")
    whole.play()
    small_run(*wanted, nodes=6, name="cut").play(until=stop)
    resumed = small_run(*wanted, nodes=6, name="cut", resume=True)
    resumed.play()
    assert model_of(resumed) == model_of(whole)
    kept = ("residual_norm", "residual_rounding_norm", "residual_ratio", "residuals")
    kept += ("weight", "examples")
    found = [
        [{k: r[k] for k in kept} for r in records(run.folder, "decisions") if "weight" in r]
        for run in (resumed, whole)
    ]
    assert found[0] == found[1]
    assert any(record["residual_rounding_norm"] > 0 for record in found[0])
    assert any(record["weight"] < record["examples"] for record in found[0])
    assert any(layer["age_rounds"] for record in found[0] for layer in record["residuals"].values())


def test_the_growth_of_residuals_is_in_the_record_of_a_round(small_run):
    run = small_run("rounds=2")
    run.play()
    for record in records(run.folder):
        of_round = [r for r in records(run.folder, "decisions") if r["round"] == record["round"]]
        assert record["residual_norm"] == pytest.approx(
            np.mean([r["residual_norm"] for r in of_round])
        )
        assert record["residual_ratio"] == max(r["residual_ratio"] for r in of_round)


def test_frozen_layers_of_a_client_are_bit_identical_in_what_it_sends(small_run):
    """A frozen layer is not even covered by the packet."""
    covered = []

    def look(reply):
        if "packet" in reply.content:
            packet = reply.content["packet"]["packed"].data
            decoded = decode(packet, run.strategy.layout, max_bytes=10**6)
            report = reply.content["report"]
            covered.append((report["round_number"], report["device_id"], set(decoded.layers)))
        return reply

    run = small_run("rounds=4", "freeze.warm-up-rounds=1", grid={"on_reply": look}, nodes=10)
    run.play()
    frozen = {
        (record["round"], record["device_id"]): {
            name for name, layer in record["layers"].items() if layer["decision"] == "freeze"
        }
        for record in records(run.folder, "decisions")
    }
    assert sum(map(len, frozen.values())) > 0
    for number, device_id, layers in covered:
        assert not layers & frozen[number, device_id]


def test_a_layer_that_every_client_freezes_does_not_move(small_run):
    run = small_run("rounds=2", "fleet=low", nodes=1)
    run.play(until=1)
    begin = model_of(run)
    frozen = [
        name
        for name, layer in records(run.folder, "decisions")[0]["layers"].items()
        if layer["decision"] == "freeze"
    ]
    run.play(until=2)
    assert frozen
    for name in frozen:
        for tensor in run.strategy.layout[name].tensors:
            assert model_of(run)[tensor.name] == begin[tensor.name]


def test_boards_with_less_memory_or_uplink_freeze_more_and_the_log_says_why(small_run):
    run = small_run("rounds=3", nodes=10)
    run.play()
    layout = run.strategy.layout
    frozen, sent, codes = {}, {}, {}
    for record in records(run.folder, "decisions"):
        profile, layers = record["profile"], record["layers"]
        away = [name for name, layer in layers.items() if layer["decision"] == "freeze"]
        frozen.setdefault(profile, []).append(sum(layout[n].parameter_count for n in away))
        sent.setdefault(profile, []).append(record["upload_packet_bytes"])
        codes.setdefault(profile, set()).update(layers[name]["reason"] for name in away)
        for layer in layers.values():
            assert (layer["decision"] == "freeze") == bool(layer["detail"])
    strong = "jetson-orin-nano"
    for weak, reason in (("rpi-zero-2w", "memory"), ("rpi-3b-plus-nbiot", "uplink")):
        assert np.mean(frozen[weak]) > np.mean(frozen[strong]) == 0
        assert codes[weak] == {reason}
    # Who lacks memory fills its packet with what it trains; who lacks uplink has less to fill.
    assert max(sent["rpi-3b-plus-nbiot"]) < min(sent[strong])


def test_the_byte_counts_are_those_of_the_messages_that_crossed_the_wire(small_run):
    run = small_run("rounds=2")
    grid = run.grid
    run.play(until=1)
    up, down = grid.upload_bytes, grid.download_bytes
    run.play(until=2)  # nobody is new, so there are no queries in this round
    second = records(run.folder)[1]
    assert grid.upload_bytes - up == second["upload_bytes"]
    assert grid.download_bytes - down == second["download_bytes"]


def test_no_packet_is_over_its_budget(small_run):
    run = small_run(nodes=10)
    run.play()
    for record in records(run.folder, "decisions"):
        assert record["upload_packet_bytes"] <= record["upload_budget_bytes"]


def test_layers_that_nobody_trained_are_not_sent_again(small_run):
    run = small_run("rounds=2", "fleet=low", nodes=1)
    run.play()
    first, second = records(run.folder)
    whole = sum(t.nbytes for t in run.strategy.layout.tensors.values())
    assert first["download_bytes"] > whole
    trained = [
        name
        for name, layer in records(run.folder, "decisions")[0]["layers"].items()
        if layer["decision"] == "train"
    ]
    parts = sum(t.nbytes for name in trained for t in run.strategy.layout[name].tensors)
    assert second["download_bytes"] < whole
    assert parts < second["download_bytes"] < parts + 8_192


def test_a_board_that_lost_its_model_is_sent_all_of_it_in_the_next_round(small_run):
    """One weak board alone leaves its first layers as they were, so it is sent only the rest."""
    run = small_run("rounds=4", "fleet=low", nodes=1)
    run.play(until=1)
    for path in (run.folder.path / "simulated-boards" / "boards" / "sim-0000").iterdir():
        path.unlink()
    run.play()
    second, third = records(run.folder)[1:3]
    assert second["failures"] == {
        "sim-0000": "lost the published model: expected version 0, the board holds none"
    }
    assert second["void"]
    assert third["clients_used"] == 1


def test_when_too_few_answer_the_round_is_void_and_three_in_a_row_end_the_run(small_run):
    def refuse(message):
        if "order" in message.content and message.metadata.dst_node_id != FIRST_NODE:
            raise ValueError("no")

    run = small_run("rounds=5", grid={"on_order": refuse})
    with pytest.raises(FleetError) as raised:
        run.play()
    reason = "code 2: ValueError: no"
    assert str(raised.value) == (
        "3 void rounds in a row; the last one: round 3 is void: 1 of 3 clients answered in time, "
        f"the quorum is 0.6 (sim-0001: {reason}; sim-0002: {reason})"
    )


def test_a_run_in_which_nothing_was_merged_does_not_end_well(small_run):
    run = small_run("rounds=2", 'clients.round-deadline="1 ms"')
    with pytest.raises(FleetError) as raised:
        run.play()
    assert str(raised.value) == (
        "no update was merged in 2 round(s), so the model is as it began; "
        f"{run.folder.rounds} says for each round who failed, was late or sat out"
    )
    for record in records(run.folder):
        assert record["void"]
        assert "frozen_share" not in record
    assert not run.folder.model.exists()


def test_what_is_written_down_is_json_without_nan(small_run, monkeypatch):
    run = small_run("rounds=1")
    scores = Scores(
        validation=Score(nan, {"accuracy": 0.1}),
        test=Score(1.0, {"accuracy": nan}),
        spread={"client_accuracy_mean": nan},
    )
    monkeypatch.setattr(run, "_evaluate", lambda: scores)
    run.play()
    (record,) = records(run.folder)
    absent = {"validation_loss", "test_accuracy", "client_accuracy_mean"}
    assert not absent & set(record)
    assert record["test_loss"] == 1.0


def test_damaged_records_do_not_keep_a_run_from_going_on(small_run):
    small_run("rounds=3").play(until=2)
    run = small_run("rounds=3", resume=True)
    whole = run.folder.rounds.read_bytes().splitlines(keepends=True)
    run.folder.rounds.write_bytes(whole[0] + b"\xff\xfe\n" + whole[1])
    run.folder.decisions.write_bytes(b"[1]\n")
    run.play()
    assert [record["round"] for record in records(run.folder)] == [1, 3]
    assert {record["round"] for record in records(run.folder, "decisions")} == {3}


def test_a_checkpoint_of_something_else_is_refused_by_name(small_run):
    small_run("rounds=3").play(until=2)
    for state in (tmp := small_run("rounds=3", resume=True)).folder.checkpoint.glob("*/state.json"):
        document = json.loads(state.read_text())
        document["state"]["strategy"] = {}
        state.write_text(json.dumps(document))
    with pytest.raises(StateError) as raised:
        tmp.play()
    assert str(raised.value) == (
        f"{tmp.folder.checkpoint}: the checkpoint of round 2 cannot be taken up "
        "(KeyError('run')); start a new run"
    )


def test_a_run_is_not_resumed_on_other_data(small_run, monkeypatch):
    tiny = ('task="tests.tiny_task"', "fleet=high", "compression.compression-ratio=1", "rounds=2")
    small_run(*tiny).play(until=1)
    monkeypatch.setattr(tiny_task, "task", replace(tiny_task.task, read=tiny_half.task.read))
    with pytest.raises(StateError, match="the checkpoint is of another strategy, model or data"):
        small_run(*tiny, resume=True).play()


def test_a_min_nodes_that_is_never_met_ends_with_the_numbers_and_the_fix(small_run):
    run = small_run(nodes=3, **{"min-nodes": 4})
    with pytest.raises(FleetError) as raised:
        run.play()
    assert str(raised.value) == (
        "expected 4 node(s) within 1 s, got 3; start more nodes (in a simulation: "
        '--federation-config "num-supernodes=10 client-resources-num-cpus=1"), or lower min-nodes'
    )


def test_the_status_and_the_config_say_what_ran(small_run):
    run = small_run("rounds=1")
    run.play()
    status = run.folder.read_status()
    assert (status.state, status.rounds_done, status.rounds) == ("finished", 1, 1)
    assert status.summary["upload_bytes"] == records(run.folder)[0]["upload_bytes"]
    assert json.loads(json.dumps(status.summary)) == status.summary
    text = run.folder.config.read_text()
    assert "# data: Fashion-mini" in text
    assert "seed = 0" in text
