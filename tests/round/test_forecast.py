"""What is forecast of round 1 is what a run decides in it."""

from __future__ import annotations

import pytest

from strategies.forecast import Planned, Refusal, forecast
from strategies.own_plan import plan_text
from tests.conftest import records

CASES = {
    "everything fits": ("fedfreeze", 3, ("fleet=high",)),
    "memory and uplink are short": ("fedfreeze", 10, ("fleet=mixed", "seed=3")),
    "weak boards": ("fedfreeze-literal", 4, ("fleet=low", "seed=7")),
    "dense updates": ("fedavg", 3, ("fleet=mid", "compression.downlink=dense")),
    "every layer worth the same": ("full", 5, ("fleet=mixed", "local.momentum=0.9")),
    "a share is asked": (
        "fedfreeze",
        6,
        ("fleet=mixed", "clients.selection=uniform", "clients.share=0.5"),
    ),
    "weak boards are spread": ("fedfreeze", 10, ("fleet=mixed", "clients.q-min=3")),
    "batches in parts": (
        "fedfreeze",
        3,
        ("fleet=low", "local.batch-size=34", 'local.micro-batches="without-batch-norm"'),
    ),
    "operations are limited": ("fedfreeze", 3, ("fleet=mid", "limits.flops-per-round=2e9")),
    "joules are limited": ("fedfreeze", 4, ("fleet=mixed", "limits.energy-j-per-round=3")),
    "a reply longer than was thought": (
        "fedfreeze",
        3,
        ("fleet=low", "residual.summary=true", "limits.upload-bytes-per-round=4700"),
    ),
    "time for one epoch": (
        "fedfreeze",
        4,
        ("fleet=low", "local.epochs=20", 'clients.round-deadline="9 s"'),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_plans_refusals_and_costs_of_round_1_are_those_of_a_run(case, small_run):
    preset, clients, overrides = CASES[case]
    run = small_run("rounds=1", *overrides, preset=preset, nodes=clients)
    task, settings = run.task, run.settings
    examples = [
        len(task.client_examples(client, clients, settings.split, None))
        for client in range(clients)
    ]
    planned = forecast(settings, task.layout(), run.fleet, examples)
    # Training itself is not what is looked at: no update need be a good one.
    run.play()

    decided = {record["device_id"]: record for record in records(run.folder, "decisions")}
    assert {p.device_id for p in planned.prospects if p.is_asked} == set(decided)
    assert len(planned.prospects) == clients
    for prospect in planned.prospects:
        if prospect.is_asked:
            record = decided[prospect.device_id]
            assert record["capacity"] == prospect.capacity.to_json()
            check(prospect, record, planned)


def check(prospect, record, planned):
    outcome = prospect.outcome
    if isinstance(outcome, Refusal):
        assert record["status"] == "sat-out"
        assert record["detail"] in {outcome.detail, f"{outcome.limit}: {outcome.detail}"}
        return
    plan, cost = outcome.plan, outcome.cost
    assert record["status"] == "used"
    assert record["profile"] == prospect.board.name
    assert {name: layer["reason"] for name, layer in record["layers"].items()} == {
        name: plan.frozen[name].code if name in plan.frozen else None
        for name in planned.layout.names
    }
    assert {name: layer["detail"] for name, layer in record["layers"].items()} == {
        name: plan.frozen[name].detail if name in plan.frozen else None
        for name in planned.layout.names
    }
    assert record["stages"] == [[stage.share, list(stage.layers)] for stage in plan.stages]
    assert record["epochs"] == plan.epochs
    assert record["batch_size"] == plan.batch_size
    assert record.get("micro_batches", 1) == plan.micro_batches
    assert record["upload_budget_bytes"] == plan.upload_budget_bytes
    assert record["binding"] == plan.binding
    assert record["examples"] == prospect.load.examples
    if planned.number == 1:
        assert record["modelled_download_s"] == cost.modelled_download_s
    else:  # a packet of the model may be smaller than its budget
        assert record["modelled_download_s"] <= cost.modelled_download_s
    assert record["modelled_compute_s"] == cost.modelled_compute_s
    assert record["modelled_memory_bytes"] == cost.modelled_memory_bytes
    # A packet may be smaller than its budget, and what is around it than there is room for.
    assert record["modelled_upload_s"] <= cost.modelled_upload_s
    assert record["upload_packet_bytes"] <= plan.upload_budget_bytes
    assert record.get("untrainable_layers", {}) == planned.untrainable
    if "coverage" in record:
        assert record["coverage"]["asked"] == list(prospect.covers)


LATER = {
    "everything trains": ("full", 10, ("fleet=mixed",)),
    "packets on the way down": ("full", 3, ("fleet=mid", "compression.downlink=sparse")),
    "layers drawn anew": ("random", 4, ("fleet=mid", "compression.downlink=dense")),
}


@pytest.mark.parametrize("case", LATER)
def test_plans_of_a_later_round_are_those_of_a_run_whose_policy_learns_nothing(case, small_run):
    """The server plans with what the replies of the round before said that boards can do."""
    preset, clients, overrides = LATER[case]
    run = small_run("rounds=2", *overrides, preset=preset, nodes=clients)
    examples = [
        len(run.task.client_examples(client, clients, run.settings.split, None))
        for client in range(clients)
    ]
    planned = forecast(run.settings, run.task.layout(), run.fleet, examples, number=2)
    run.play()
    written = [record for record in records(run.folder, "decisions") if record["round"] == 2]
    decided = {record["device_id"]: record for record in written}
    assert len(decided) == clients
    for prospect in planned.prospects:
        check(prospect, decided[prospect.device_id], planned)


def test_the_model_that_comes_down_weighs_what_is_forecast(small_run):
    run = small_run("rounds=1", "fleet=high", nodes=1)
    run.play()
    (record,) = records(run.folder, "decisions")
    (prospect,) = forecast(run.settings, run.task.layout(), run.fleet, [10]).prospects
    # The order around it weighs less than it is taken to.
    assert 0 < prospect.load.download_bytes - record["download_bytes"] < 8_192


def test_a_board_that_is_not_asked_still_says_what_it_would_do(small_run):
    run = small_run("rounds=1", "clients.selection=uniform", "clients.share=0.2", nodes=1)
    planned = forecast(run.settings, run.task.layout(), run.fleet, [50] * 10)
    idle = [prospect for prospect in planned.prospects if not prospect.is_asked]
    assert len(idle) == 8
    assert all(isinstance(prospect.outcome, Planned) for prospect in idle)
    assert planned.can_train


def test_a_suggestion_that_is_kept_is_not_written_down_again(small_run):
    run = small_run("rounds=1", "fleet=high", nodes=1)
    (prospect,) = forecast(run.settings, run.task.layout(), run.fleet, [50]).prospects
    assert plan_text(prospect.outcome.plan, prospect.outcome.plan) == "-"
