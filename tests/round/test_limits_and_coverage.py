"""Limits of a round, batches in parts and coverage of the fleet, in whole rounds."""

from __future__ import annotations

import pytest

from device_profiles.board import load_board
from device_profiles.cost import training_memory_bytes
from fedfreeze.errors import FleetError
from strategies.assignment import Reach, assigned
from tests.conftest import records
from tests.round.held_models import model_of

WEAK = "rpi-zero-2w"


def decided(run):
    return records(run.folder, "decisions")


def trained(record):
    return {name for name, layer in record["layers"].items() if layer["decision"] == "train"}


def frozen_for(record):
    return {layer["reason"] for layer in record["layers"].values()} - {None}


# ---- limits of a round

EVEN = ('data.partition="iid"', "fleet=high")  # 900 examples for each of three boards


@pytest.mark.parametrize(
    ("limit", "code"),
    [("limits.flops-per-round=4e9", "flops"), ("limits.upload-bytes-per-round=5000", "upload")],
)
def test_a_limit_of_the_round_binds_on_every_board_and_is_named(small_run, limit, code):
    """An epoch of everything takes 5.6e9 operations; a reply without a packet 4 kB at most."""
    run = small_run("rounds=1", *EVEN, limit)
    run.play()
    limits = run.settings.limits
    for record in decided(run):
        assert record["status"] == "used"
        assert record["binding"] == code
        assert frozen_for(record) == {code}
        assert record["upload_bytes"] <= (limits.upload_bytes_per_round or record["upload_bytes"])


def test_joules_are_counted_with_the_watts_of_the_boards_profile(small_run):
    run = small_run("rounds=1", *EVEN, nodes=1, name="free")
    run.play()
    (record,) = decided(run)
    power = load_board(record["profile"]).power
    training_j = power.compute.value * record["modelled_compute_s"]
    radio_s = record["modelled_download_s"] + record["modelled_upload_s"]
    limit = power.radio.value * radio_s + 0.8 * training_j
    run = small_run("rounds=1", *EVEN, f"limits.energy-j-per-round={limit}", nodes=1)
    run.play()
    (record,) = decided(run)
    assert (record["binding"], frozen_for(record)) == ("energy", {"energy"})
    assert record["modelled_compute_s"] * power.compute.value <= 0.8 * training_j * 1.001


def test_a_limit_that_leaves_nothing_makes_boards_sit_out_and_says_by_how_much(small_run):
    run = small_run("rounds=1", *EVEN, "limits.flops-per-round=1")
    with pytest.raises(FleetError):
        run.play()
    for record in decided(run):
        assert record["status"] == "sat-out"
        assert record["detail"].startswith('"head" alone: training takes ')
        assert record["detail"].endswith(" operations with it, limits.flops-per-round is 1")


# ---- batches in parts

LARGE = ("fleet=low", "local.batch-size=34")  # what they keep of the first layers does not fit


def test_a_board_that_may_split_its_batches_trains_what_its_memory_forbade(small_run):
    split = 'local.micro-batches="without-batch-norm"'
    as_before = small_run("rounds=1", *LARGE, name="whole", nodes=1)
    in_parts = small_run("rounds=1", *LARGE, split, nodes=1)
    for run in (as_before, in_parts):
        run.play()
    (before,), (after,) = decided(as_before), decided(in_parts)
    assert before["profile"] == after["profile"] == WEAK
    assert "micro_batches" not in before
    assert after["micro_batches"] > 1
    assert len(trained(before)) < len(trained(after))
    assert after["batch_size"] == before["batch_size"] == 34
    assert after["binding"] == "memory"
    assert after["modelled_memory_bytes"] <= after["board_capacity"]["memory_bytes"]["value"]


# ---- coverage

WANTED = ("rounds=4", "fleet=mixed", "clients.q-min=3", "clients.coverage-rounds=2")


@pytest.fixture
def covered(small_run):
    run = small_run(*WANTED, "freeze.warm-up-rounds=1", nodes=10)
    run.play()
    return run


def test_every_layer_is_trained_by_so_many_clients_in_every_block(covered):
    layout = covered.strategy.layout
    for block in ((1, 2), (3, 4)):
        for layer in layout.names:
            clients = {
                record["device_id"]
                for record in decided(covered)
                if record["round"] in block and record["status"] == "used"
                if layer in trained(record)
            }
            assert len(clients) >= 3, (block, layer)


def test_weak_boards_train_the_layer_that_coverage_asks_for(covered):
    first = [r for r in decided(covered) if r["round"] == 1 and not r["coverage"]["roomy"]]
    assert len(first) >= 2
    for record in first:
        (layer,) = record["coverage"]["asked"]
        assert layer in trained(record)


def test_who_was_asked_for_what_follows_from_the_audit_log(covered):
    history = {}
    for number in range(1, 5):
        if number % 2 == 1:
            history = {}
        now = [record for record in decided(covered) if record["round"] == number]
        cohort = {
            record["device_id"]: Reach(
                tuple(record["coverage"]["reaches"]),
                record["coverage"]["roomy"],
                frozenset(record["coverage"]["planned"]),
                frozenset(record["coverage"]["settled"]),
            )
            for record in now
        }
        before = {layer: frozenset(clients) for layer, clients in history.items()}
        asked = assigned(cohort, before, q_min=3, rounds_left=1 + number % 2)
        for record in now:
            assert asked.get(record["device_id"], ()) == tuple(record["coverage"]["asked"])
            if record["status"] == "used":
                for layer in trained(record):
                    history.setdefault(layer, set()).add(record["device_id"])


def test_a_run_that_was_stopped_within_a_block_covers_as_one_that_was_not(small_run, covered):
    wanted = (*WANTED, "freeze.warm-up-rounds=1")
    small_run(*wanted, nodes=10, name="cut").play(until=3)
    resumed = small_run(*wanted, nodes=10, name="cut", resume=True)
    resumed.play()
    assert model_of(resumed) == model_of(covered)
    assert [r["coverage"] for r in decided(resumed)] == [r["coverage"] for r in decided(covered)]


def test_layers_that_no_board_can_train_are_in_the_records_of_the_round(small_run):
    run = small_run("rounds=1", *LARGE, nodes=1)
    run.play()
    (record,), (decision,) = records(run.folder), decided(run)
    layout, has = run.strategy.layout, decision["capacity"]["memory_bytes"]["value"]
    expected = {
        name: "memory"
        for name in layout.names
        if training_memory_bytes(layout, [name], 34, optimizer_slots=0) > has
    }
    assert "stem" in expected
    assert record["untrainable_layers"] == decision["untrainable_layers"] == expected


def test_a_fleet_that_can_train_everything_has_no_such_record(small_run):
    run = small_run("rounds=1", "fleet=high")
    run.play()
    assert "untrainable_layers" not in records(run.folder)[0]
    assert "coverage" not in decided(run)[0]
