"""``mask = "shared"``: both ends draw which values are sent, and no position crosses the wire."""

from __future__ import annotations

import numpy as np
import pytest

from compression import decode
from compression.packet import Kind
from strategies.mask_rule import MaskRule
from tasks.task import initial_arrays
from tests.conftest import records
from tests.round.held_models import held_by, model_of
from tests.wide_task import task

LAYOUT = task.layout()
SHARED = (
    'task="tests.wide_task"',
    "fleet=high",
    "local.epochs=2",
    "local.batch-size=8",
    "compression.compression-ratio=16",
    'compression.mask="shared"',
)
KIND = 3  # place of the packet's kind


def trained(record):
    layers = record["layers"].items()
    return LAYOUT.ordered(name for name, layer in layers if layer["decision"] == "train")


def mask_of(run, record, density=None):
    """What the rule says for one line of the audit log."""
    layers = trained(record)
    rule = MaskRule(run.settings.seed, density)
    mask = rule.mask(LAYOUT, layers, record["upload_budget_bytes"], record["round"])
    return mask.positions(LAYOUT, layers)


def packets_in(packets):
    """Keeps every packet by round and device."""

    def look(reply):
        report = reply.content.get("report")
        if report is not None and "packet" in reply.content:
            packet = reply.content["packet"]["packed"].data
            packets[report["round_number"], report["device_id"]] = packet
        return reply

    return look


def test_nothing_but_the_values_of_the_mask_moves(small_run):
    run = small_run(*SHARED, "rounds=1", "compression.density=0.05", nodes=2, preset="full")
    run.play()
    before = initial_arrays(task, run.settings.seed)
    record, other = records(run.folder, "decisions")
    positions = mask_of(run, record, density=0.05)
    # Both boards have the same mask, whatever their budgets are.
    assert {n: p.tolist() for n, p in positions.items()} == {
        n: p.tolist() for n, p in mask_of(run, other, density=0.05).items()
    }
    sizes = sum(LAYOUT.tensors[name].size for name in positions)
    assert abs(sum(map(len, positions.values())) - 0.05 * sizes) < len(LAYOUT)
    moved = 0
    for name, own in positions.items():
        differs = (run.strategy.published.arrays[name] != before[name]).reshape(-1)
        moved += int(differs[own].sum())
        assert not np.delete(differs, own).any(), name
    assert moved > 0.9 * sum(map(len, positions.values()))


def test_packets_name_no_position_and_fill_their_budgets(small_run):
    packets = {}
    run = small_run(*SHARED, grid={"on_reply": packets_in(packets)}, preset="full")
    run.play()
    decisions = records(run.folder, "decisions")
    assert len(decisions) == len(packets) == 9
    for record in decisions:
        packet = packets[record["round"], record["device_id"]]
        budget = record["upload_budget_bytes"]
        assert (record["status"], packet[KIND]) == ("used", Kind.SHARED)
        assert 0.93 * budget < len(packet) == record["upload_packet_bytes"] <= budget
        positions = mask_of(run, record)
        decoded = decode(packet, LAYOUT, max_bytes=budget, positions=positions).update
        for name, own in positions.items():
            assert not np.delete(decoded[name].reshape(-1), own).any()
    rounds = {r["round"]: mask_of(run, r)["body.1.weight"].tolist() for r in decisions}
    assert len({tuple(own) for own in rounds.values()}) == 3


def test_frozen_layers_have_no_mask_and_all_boards_are_merged(small_run):
    run = small_run(*SHARED, "rounds=5", "freeze.warm-up-rounds=1", nodes=4)
    run.play()
    decisions = records(run.folder, "decisions")
    assert {record["status"] for record in decisions} == {"used"}
    assert any(set(trained(record)) < set(LAYOUT.names) for record in decisions)
    assert [r["failures"] for r in records(run.folder) if "failures" in r] == []


def test_what_was_sent_in_vain_comes_back_with_the_mask_of_its_round(small_run):
    packets = {}
    look = packets_in(packets)

    def lose(reply):
        report = look(reply).content.get("report")
        first = report is not None and report["device_id"] == "sim-0000"
        return None if first and report.get("round_number") == 2 else reply

    run = small_run(*SHARED, 'clients.round-timeout="1 s"', grid={"on_reply": lose}, preset="full")
    run.play(until=2)
    before = held_by(run, 0)
    (budget,) = {r["upload_budget_bytes"] for r in records(run.folder, "decisions")}
    run.play(until=3)
    record = {"layers": {n: {"decision": "train"} for n in LAYOUT.names}, "round": 2}
    positions = mask_of(run, record | {"upload_budget_bytes": budget})
    sent = decode(packets[2, "sim-0000"], LAYOUT, max_bytes=budget, positions=positions).update
    for name, array in held_by(run, 0).pending.residual_before.items():
        expected = before.residual[name] + sent[name]
        assert np.array_equal(array, expected.astype(np.float32)), name


@pytest.mark.parametrize("density", [None, 0.03])
def test_a_run_that_was_stopped_equals_one_that_was_not(small_run, density):
    wanted = SHARED if density is None else (*SHARED, f"compression.density={density}")
    whole = small_run(*wanted, name="whole")
    whole.play()
    small_run(*wanted, name="cut").play(until=2)
    resumed = small_run(*wanted, name="cut", resume=True)
    resumed.play()
    assert model_of(resumed) == model_of(whole)
