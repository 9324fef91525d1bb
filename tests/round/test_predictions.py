"""Predicted beside measured cost in whole rounds, and how far off the run says it was."""

from __future__ import annotations

from statistics import median

import pytest

from client_app.probes import peak
from server_app.cost_table import QUANTITIES
from strategies.orders import ORDER_BYTES
from tests.conftest import records
from tests.round.held_models import model_of

TINY = ('task="tests.tiny_task"', "fleet=high", "compression.compression-ratio=1", "rounds=4")


@pytest.fixture(autouse=True)
def _a_home_of_its_own(tmp_path, monkeypatch):
    """Real boards measure themselves, and keep it there."""
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))


def tables(run):
    return [record["cost"] for record in records(run.folder, "decisions") if "cost" in record]


def errors_in(cost_tables, quantity):
    rows = [table[quantity] for table in cost_tables if len(table.get(quantity, ())) == 2]
    return [row["modelled"] / row["measured"] - 1 for row in rows]


def predictions(run):
    return run.folder.read_status().summary["predictions"]


def test_a_simulation_compares_bytes_and_nothing_that_this_machine_took(small_run):
    run = small_run(*TINY)
    run.play()
    for record in records(run.folder, "decisions"):
        table = record["cost"]
        assert table["upload_bytes"]["measured"] == record["upload_bytes"]
        assert table["download_bytes"]["measured"] == record["download_bytes"]
        assert set(table) == set(QUANTITIES) - {"energy_j"}
        others = set(table) - {"upload_bytes", "download_bytes"}
        assert [name for name in others if "measured" in table[name]] == []
        assert table["compute_s"]["modelled"] == record["modelled_compute_s"]
        assert table["memory_bytes"]["modelled"] == record["modelled_memory_bytes"]


def test_a_board_that_follows_its_suggestion_sends_no_more_than_was_predicted(small_run):
    """What is predicted is the largest packet with room for its envelope, not for another plan."""
    run = small_run(*TINY)
    run.play()
    assert all(error >= 0 for error in errors_in(tables(run), "upload_bytes"))
    for table in tables(run):
        assert table["download_bytes"]["modelled"] >= ORDER_BYTES


def test_the_summary_says_the_median_and_the_worst_error_of_all_clients_and_rounds(small_run):
    run = small_run(*TINY)
    run.play()
    found = predictions(run)
    assert set(found) == {"upload_bytes", "download_bytes"}
    for quantity, said in found.items():
        errors = errors_in(tables(run), quantity)
        assert said == {
            "count": 3 * 4,
            "median_error": pytest.approx(median(map(abs, errors))),
            "worst_error": pytest.approx(max(errors, key=abs)),
        }


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_resumed_run_counts_each_round_once(small_run, stop):
    whole = small_run(*TINY, name="whole")
    whole.play()
    # A name as long: it travels in the orders.
    small_run(*TINY, name="begun").play(until=stop)
    resumed = small_run(*TINY, name="begun", resume=True)
    # A round that had begun when the server died is done again.
    line = resumed.folder.decisions.read_bytes().splitlines()[-1]
    with resumed.folder.decisions.open("ab") as file:
        file.write(line.replace(b'"round": %d' % stop, b'"round": %d' % (stop + 1)) + b"\n")
    resumed.play()
    assert predictions(resumed) == predictions(whole)


def test_a_simulated_board_sends_no_measurement_of_this_machine(small_run):
    sent = []
    run = small_run(*TINY, grid={"on_wire": lambda message, size: sent.append(message.content)})
    run.play(until=1)
    assert len([content for content in sent if "packet" in content]) == 3
    assert not [content for content in sent if {"measured", "energy"} & set(content)]


# ---- real boards

CAMS = [
    {"device-id": f"cam-{index}", "profile": "rpi-5-8gb", "partition-id": index}
    | {"num-partitions": 3}
    for index in range(3)
]


@pytest.fixture
def told(monkeypatch):
    """Boards whose peak is 30 MB and of which the kernel says no more."""
    monkeypatch.setattr("client_app.app.ProcessPeak", lambda system: peak.FakePeak(30_000_000))


def test_a_real_board_is_told_beside_each_prediction_what_it_measured(small_run, told):
    run = small_run(*TINY, "rounds=2", grid={"node_configs": CAMS})
    run.play()
    for record in records(run.folder, "decisions"):
        table = record["cost"]
        assert table["compute_s"]["measured"] == record["train_s"] > 0
        assert table["memory_bytes"]["measured"] == 30_000_000
        # Messages within one process take no ten seconds.
        assert "measured" not in table["download_s"]
        assert "measured" not in table["upload_s"]
        assert table["energy_j"]["modelled"] > 0
    found = predictions(run)
    assert set(found) >= {"upload_bytes", "download_bytes", "memory_bytes", "compute_s"}
    assert {said["count"] for said in found.values()} == {3 * 2}


def test_what_a_board_measures_moves_no_model(small_run, told, monkeypatch):
    """The same boards, of which one time nobody can tell the peak."""
    models = []
    for name, of_peak in (("told", peak.FakePeak(30_000_000)), ("untold", peak.FakePeak(None))):
        monkeypatch.setattr("client_app.app.ProcessPeak", lambda system, it=of_peak: it)
        run = small_run(*TINY, "rounds=2", name=name, grid={"node_configs": CAMS})
        run.play()
        models.append(model_of(run))
    assert models[0] == models[1]
    assert all("measured" not in table["memory_bytes"] for table in tables(run))
