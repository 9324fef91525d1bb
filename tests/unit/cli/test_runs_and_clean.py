import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import processes, workspace
from cli.clean import clean, old_bundles, size_bytes
from cli.runs import ListedRun, describe, runs, table
from fedfreeze.run_folder import RunFailure, RunStatus, new_run_folder


def a_run(name, status=None, rounds=()):
    folder = new_run_folder("x", name=name)
    folder.request.write_text("{}")
    if status is not None:
        folder.write_status(status)
    folder.rounds.write_text("".join(json.dumps(record) + "\n" for record in rounds))
    return folder


def aged(path: Path, days):
    for each in (*path.rglob("*"), path):
        moment = each.stat().st_mtime - days * 86400
        os.utime(each, (moment, moment))


def dead(at):
    """The record of a workspace as if its owner had died."""
    record = {**vars(at.record), "owner_created_at_s": at.record.owner_created_at_s - 100}
    (at.record_folder / "process.json").write_text(json.dumps(record))


ROUNDS = [
    {"round": n, "test_accuracy": n / 10, "upload_bytes": 10, "dense_upload_bytes": 900}
    for n in (1, 2, 3)
]


def test_a_finished_run_is_listed_with_what_came_out(home):
    folder = a_run("done", RunStatus("finished", 3, 3), ROUNDS)
    listed = describe(folder, folder.rounds.stat().st_mtime + 60)
    assert listed == ListedRun(
        "done", "finished", 3, 3, pytest.approx(0.2), 90.0, pytest.approx(60, abs=1)
    )


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (None, "unfinished"),
        (RunStatus("running", 1, 3), "unfinished"),
        (RunStatus("failed", 1, 3, RunFailure("RunError", "x", 7)), "failed"),
    ],
)
def test_a_run_that_nobody_attends_is_not_called_running(home, status, state):
    assert describe(a_run("it", status), 0).state == state


def test_a_run_whose_command_lives_is_running(home):
    folder = a_run("it", RunStatus("running", 1, 3))
    at = workspace.create("it")
    assert describe(folder, 0).state == "running"
    dead(at)
    assert describe(folder, 0).state == "unfinished"
    workspace.remove(at.record_folder, grace_s=0)


def test_one_torn_run_does_not_hide_the_others(home, capsys):
    a_run("good", RunStatus("finished", 3, 3), ROUNDS)
    a_run("torn").status.write_text("{")
    runs(as_json=True)
    listed = {run["name"]: run["state"] for run in json.loads(capsys.readouterr().out)}
    assert listed == {"good": "finished", "torn": "unreadable"}


def test_the_table_has_columns_and_leaves_unknown_figures_blank():
    assert table(
        [
            ListedRun("fedfreeze-1", "finished", 30, 30, 0.8421, 104.2, 7200.0),
            ListedRun("x", "unfinished", 0, None, None, None, 5.0),
        ]
    ) == [
        "name         state       rounds  accuracy  uplink     age",
        "fedfreeze-1  finished    30/30   0.842     104x less  2 h",
        "x            unfinished  0/?                          5 s",
    ]


def test_where_nothing_ran_the_list_says_how_to_start(home, capsys):
    runs()
    assert capsys.readouterr().out == (
        f"No runs in {home}/runs yet; start one with: fedfreeze run\n"
    )


@pytest.fixture
def flower_home(tmp_path, monkeypatch):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "flwr"))
    return tmp_path / "flwr"


def test_with_nothing_left_over_it_says_so(home, flower_home, capsys):
    clean()
    assert capsys.readouterr().out == "Nothing to clean.\n"


def test_the_home_of_a_dead_run_goes_and_that_of_a_live_one_stays(home, flower_home, capsys):
    gone, stays = workspace.create("gone"), workspace.create("stays")
    (gone.path / "big").write_bytes(b"x" * 5000)
    dead(gone)
    clean(dry_run=True)
    said = capsys.readouterr().out
    assert said.startswith("private Flower home of gone, no process left: 5.")
    assert said.splitlines()[-1].startswith("Would free 5.")
    assert gone.path.is_dir()
    clean()
    assert not gone.path.exists()
    assert not gone.record_folder.exists()
    assert stays.path.is_dir()
    workspace.remove(stays.record_folder, grace_s=0)


def test_only_the_latest_of_our_bundles_stays_and_other_apps_are_not_touched(flower_home):
    apps = flower_home / "apps"
    for age_days, name in enumerate(["c", "b", "a"]):
        bundle = apps / f"fedfreeze.fedfreeze.0.1.0.{name}"
        bundle.mkdir(parents=True)
        (bundle / "f").write_bytes(b"123")
        aged(bundle, age_days)
    (apps / "other.app.1.0.0.x").mkdir()
    old = list(old_bundles(flower_home))
    assert [(leftover.what, leftover.size_bytes) for leftover in old] == [
        (f"old app bundle {apps}/fedfreeze.fedfreeze.0.1.0.a", 3),
        (f"old app bundle {apps}/fedfreeze.fedfreeze.0.1.0.b", 3),
    ]
    for leftover in old:
        leftover.remove()
    assert sorted(path.name for path in apps.iterdir()) == [
        "fedfreeze.fedfreeze.0.1.0.c",
        "other.app.1.0.0.x",
    ]


def test_runs_go_only_when_asked_and_only_the_old_ones(home, flower_home, capsys):
    old, new = a_run("old"), a_run("new")
    aged(old.path, 40)
    clean()
    assert old.path.is_dir()
    clean(runs_older_than=30)
    assert not old.path.exists()
    assert new.path.is_dir()
    assert "run old, 40 days old: 2 B" in capsys.readouterr().out


def test_a_folder_that_is_no_run_is_never_deleted(home, flower_home):
    folder = home / "runs" / "photos"
    folder.mkdir(parents=True)
    (folder / "cat.jpg").write_bytes(b"cat")
    aged(folder, 400)
    clean(runs_older_than=30)
    assert (folder / "cat.jpg").is_file()


def test_a_run_that_goes_on_is_not_deleted_however_old(home, flower_home):
    folder = a_run("live")
    aged(folder.path, 400)
    at = workspace.create("live")
    clean(runs_older_than=30)
    assert folder.path.is_dir()
    workspace.remove(at.record_folder, grace_s=0)


def test_sizes_do_not_follow_links(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 1000)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link").symlink_to(tmp_path / "big")
    (inner / "file").write_bytes(b"x" * 10)
    assert size_bytes(inner) < 500


def test_orphans_of_a_dead_run_are_counted_before_they_are_ended(home, flower_home, capsys):
    at = workspace.create("orphans")
    env = {**os.environ, processes.MARKER: at.record.marker}
    orphan = subprocess.Popen([sys.executable, "-c", "input()"], env=env, stdin=subprocess.PIPE)
    dead(at)
    clean()
    assert "with 1 processes that still run" in capsys.readouterr().out
    assert processes.family(at.record.marker) == []
    orphan.communicate()
