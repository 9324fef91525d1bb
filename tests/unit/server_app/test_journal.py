"""What a run writes down: lines that survive a crash, and the reason for every decision."""

import json
from dataclasses import replace
from typing import get_args

import pytest

from fedfreeze.messages import EnergyReport
from fedfreeze.plan import ReasonCode
from server_app.journal import Lines, decisions


@pytest.fixture
def lines(tmp_path):
    return Lines(tmp_path / "rounds.jsonl")


def text_of(tmp_path):
    return (tmp_path / "rounds.jsonl").read_text(encoding="utf-8")


def test_records_come_back_in_the_order_in_which_they_were_appended(lines):
    lines.append({"round": 1, "text": "ä\u2028b"})
    lines.append({"round": 2}, {"round": 2, "x": None})
    assert list(lines.read()) == [
        {"round": 1, "text": "ä\u2028b"},
        {"round": 2},
        {"round": 2, "x": None},
    ]


def test_a_file_that_is_not_there_holds_nothing(tmp_path, lines):
    assert list(lines.read()) == []
    lines.cut_after(0)
    assert text_of(tmp_path) == ""


def test_cutting_drops_later_rounds_and_keeps_the_others_byte_for_byte(tmp_path, lines):
    lines.append(*({"round": number, "x": number / 3} for number in (1, 2, 2)))
    before = text_of(tmp_path)
    lines.append({"round": 3}, {"round": 4})
    lines.cut_after(2)
    assert text_of(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["rounds.jsonl"]


@pytest.mark.parametrize("length", range(1, len('{"round": 22}')))
def test_a_torn_last_line_is_left_out_and_gone_after_the_cut(tmp_path, lines, length):
    """Whatever the length of what reached the device before the power went."""
    lines.append({"round": 1})
    whole = text_of(tmp_path)
    path = tmp_path / "rounds.jsonl"
    path.write_text(whole + json.dumps({"round": 22})[:length])
    assert list(lines.read()) == [{"round": 1}]
    lines.cut_after(1)
    assert text_of(tmp_path) == whole
    lines.append({"round": 2})
    assert list(lines.read()) == [{"round": 1}, {"round": 2}]


def test_a_last_line_that_lacks_only_its_end_is_whole_and_not_glued_to_the_next(tmp_path, lines):
    (tmp_path / "rounds.jsonl").write_text('{"round": 1}')
    lines.cut_after(1)
    lines.append({"round": 2})
    assert list(lines.read()) == [{"round": 1}, {"round": 2}]


# ---- decisions

EAGER = (
    'task="tests.tiny_task"',
    "fleet=high",
    "compression.compression-ratio=1",
    "freeze.warm-up-rounds=0",
    "freeze.ramp-rounds=1",
    "freeze.threshold=0.0",
)


@pytest.fixture
def run(small_run):
    """Two rounds; in the second one boards freeze by score."""
    run = small_run(*EAGER, "rounds=3")
    run.play(until=2)
    return run


def decided(run, **changes):
    result = replace(run.strategy.result, **changes)
    return {record["device_id"]: record for record in decisions(result, run.strategy.layout)}


def test_every_layer_of_every_client_has_its_decision_inputs_and_for_freezing_a_reason(run):
    found = decided(run)
    assert list(found) == ["sim-0000", "sim-0001", "sim-0002"]
    frozen = 0
    for record in found.values():
        assert list(record["layers"]) == list(run.strategy.layout.names)
        for layer in record["layers"].values():
            assert set(layer["inputs"]) >= {"stability", "importance", "affinity", "gain", "score"}
            if layer["decision"] == "freeze":
                frozen += 1
                assert layer["reason"] in get_args(ReasonCode)
                assert layer["detail"]
            else:
                assert layer["decision"] == "train"
                assert layer["reason"] is None
                assert layer["detail"] is None
    assert frozen > 0


def test_a_decision_that_the_score_made_has_that_score_among_its_inputs(run):
    for record in decided(run).values():
        for layer in record["layers"].values():
            if layer["reason"] == "score":
                assert layer["detail"].startswith(f"score {layer['inputs']['score']:.3f} above 0")


def test_measured_and_modelled_figures_stand_side_by_side_under_names_of_their_own(run):
    answers = run.strategy.result.answers
    for device_id, record in decided(run).items():
        answer = answers[device_id]
        assert record["upload_packet_bytes"] == answer.packet_bytes
        assert record["upload_bytes"] == answer.upload_bytes > answer.packet_bytes
        assert record["train_s"] == answer.report.train_s > 0
        assert record["modelled_compute_s"] == answer.cost.modelled_compute_s
        assert record["residual_was"] == "accepted"
        trained = {n for n, layer in record["layers"].items() if layer["decision"] == "train"}
        assert set(record["measures"]) == trained


def test_what_a_board_drew_is_written_down_and_absent_where_it_was_not_measured(run):
    names = {name for record in decided(run).values() for name in record if "energy" in name}
    assert names == {"modelled_energy_j"}
    answers = dict(run.strategy.result.answers)
    drawn = EnergyReport(energy_j=12.5, source="ina3221", scope="board", samples=60, gaps_s=0.0)
    answers["sim-0001"] = replace(answers["sim-0001"], energy=drawn)
    record = decided(run, answers=answers)["sim-0001"]
    said = (record["energy_j"], record["energy_source"], record["energy_scope"])
    assert said == (12.5, "ina3221", "board")


def test_the_residual_stands_beside_what_was_trained_and_a_warning_where_there_is_one(run):
    result = run.strategy.result
    found = decided(run, residual_warnings={"sim-0001": "too large"})
    for device_id, record in found.items():
        answer = result.answers[device_id]
        assert record["residual_norm"] == answer.report.residual_norm > 0
        assert record["residual_rounding_norm"] == 0
        assert record["residual_ratio"] == result.residual_ratios[device_id] > 0
        assert record["weight"] == record["examples"]
        assert not {"residuals", "widths"} & set(record)
    assert {i: r.get("residual_warning") for i, r in found.items()} == {
        "sim-0000": None,
        "sim-0001": "too large",
        "sim-0002": None,
    }


def test_a_summary_of_the_residual_is_written_down_layer_by_layer(small_run):
    run = small_run("rounds=1", "residual.summary=true")
    run.play()
    for record in decided(run).values():
        trained = {n for n, layer in record["layers"].items() if layer["decision"] == "train"}
        assert set(record["residuals"]) == trained
        norms = [layer["norm"] for layer in record["residuals"].values()]
        assert sum(n * n for n in norms) ** 0.5 == pytest.approx(record["residual_norm"], rel=1e-4)
        for layer in record["residuals"].values():
            assert 0 <= layer["largest"] <= layer["norm"] * (1 + 1e-5)
            assert layer["age_rounds"] == 0


def test_the_widths_of_literal_packets_stand_beside_what_they_were_chosen_from(small_run):
    run = small_run("rounds=2", 'compression.mode="literal"')
    run.play()
    for record in decided(run).values():
        trained = {n for n, layer in record["layers"].items() if layer["decision"] == "train"}
        assert record["widths"]
        assert set(record["widths"]) <= trained
        for layer in record["widths"].values():
            assert layer["value_bits"] in {2, 4, 8, 16}
            assert layer["lately"] > 0


def test_what_became_of_a_client_is_said(run):
    used = ("sim-0000",)
    capacity = run.strategy.result.capacities["sim-0000"]
    found = decided(
        run,
        used=used,
        late=("sim-0001",),
        failed={"sim-0002": "no reply"},
        answers={i: a for i, a in run.strategy.result.answers.items() if i != "sim-0002"},
        sat_out={"sim-0009": "memory: too small"},
        capacities={**run.strategy.result.capacities, "sim-0009": capacity},
    )
    assert {i: record["status"] for i, record in found.items()} == {
        "sim-0000": "used",
        "sim-0001": "late",
        "sim-0002": "failed",
        "sim-0009": "sat-out",
    }
    assert found["sim-0002"]["detail"] == "no reply"
    assert "train_s" not in found["sim-0002"]
    assert found["sim-0009"] == {
        "round": 2,
        "device_id": "sim-0009",
        "status": "sat-out",
        "capacity": capacity.to_json(),
        "detail": "memory: too small",
    }


def test_a_client_that_answered_in_a_void_round_is_marked_void(run):
    found = decided(run, used=(), void=True)
    assert {record["status"] for record in found.values()} == {"void"}


def test_a_record_is_plain_json(run):
    for record in decided(run).values():
        assert json.loads(json.dumps(record, allow_nan=False)) == record
