"""A cohort is a pure function of the audit log, in whole runs."""

from __future__ import annotations

from itertools import groupby

import pytest

from strategies.selection import selector_for
from strategies.selection.log import offer_of
from strategies.tables import SCORED
from tests.conftest import records
from tests.round.held_models import model_of

ROUNDS = 6


def wanted(rule):
    return (
        f"rounds={ROUNDS}",
        "clients.quorum=0.0",
        'clients.round-timeout="1 s"',
        f'clients.selection="{rule}"',
        "clients.share=0.5",
        "clients.fairness-rounds=4",
    )


def lose_one(reply):
    """Device 2's update of round 2 never arrives, whoever asked for it."""
    report = reply.content.get("report")
    lost = report.get("round_number") == 2 and report["device_id"] == "sim-0002"
    return None if lost else reply


def by_round(run):
    decisions = records(run.folder, "decisions")
    return [list(group) for _, group in groupby(decisions, key=lambda record: record["round"])]


@pytest.fixture(params=SCORED)
def played(request, small_run):
    run = small_run(*wanted(request.param), nodes=6, grid={"on_reply": lose_one})
    run.play()
    return run


def test_a_fresh_selector_that_is_shown_the_log_chooses_every_cohort_again(played):
    rounds = by_round(played)
    assert [of_round[0]["round"] for of_round in rounds] == list(range(1, ROUNDS + 1))
    fresh = selector_for(played.settings.clients, played.settings.seed)
    for of_round in rounds:
        chosen = fresh.cohort(offer_of(of_round[0]))
        clients = of_round[0]["selection"]["clients"]
        assert dict(chosen.why) == {i: e["why"] for i, e in clients.items() if "why" in e}
        assert dict(chosen.scores) == {i: e["score"] for i, e in clients.items() if "score" in e}
        assert list(chosen.cohort) == sorted(record["device_id"] for record in of_round[1:])
        fresh.observe(of_round)
    assert fresh.state() == played.strategy.state()["selection"]


def test_the_log_says_of_everybody_that_was_there_whether_and_why_it_was_asked(played):
    name = played.settings.clients.selection
    for of_round in by_round(played):
        selection = of_round[0]["selection"]
        assert selection["rule"] == name
        assert sorted(selection["clients"]) == [f"sim-{n:04d}" for n in range(6)]
        asked = {i for i, entry in selection["clients"].items() if "why" in entry}
        assert len(asked) == 3
    last = by_round(played)[-1]
    whys = {e["why"] for of in by_round(played) for e in of[0]["selection"]["clients"].values()
            if "why" in e}  # fmt: skip
    assert whys <= {"exploit", "explore", "floor"}
    fields = {"oort": "train_loss_rms", "gain": "collaborative_gain"}
    for rule, field in fields.items():
        assert all((field in record) == (rule == name) for record in last[1:])


def test_a_run_that_was_stopped_asks_whom_one_that_was_not_asked(small_run, played):
    rule = played.settings.clients.selection
    grid = {"on_reply": lose_one}
    small_run(*wanted(rule), nodes=6, grid=grid, name="cut").play(until=3)
    resumed = small_run(*wanted(rule), nodes=6, grid=grid, name="cut", resume=True)
    resumed.play()
    assert model_of(resumed) == model_of(played)
    assert [of[0] for of in by_round(resumed)] == [of[0] for of in by_round(played)]
    assert resumed.strategy.state()["selection"] == played.strategy.state()["selection"]


def test_a_rule_that_only_draws_writes_no_reasons(small_run):
    run = small_run("rounds=1", 'clients.selection="uniform"', "clients.share=0.5")
    run.play()
    assert [record["device_id"] for of in by_round(run) for record in of] == [
        *run.strategy.result.used
    ]
