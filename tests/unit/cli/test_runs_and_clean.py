import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cli import processes, workspace
from cli.clean import clean, old_bundles, size_bytes
from cli.command_line import exit_code
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
        "done",
        "finished",
        3,
        3,
        "accuracy",
        pytest.approx(0.2),
        90.0,
        pytest.approx(60, abs=1),
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


def lose(path):
    path.unlink(missing_ok=True)
    return path


ODD = {
    "a torn status": lambda f: f.status.write_text("{"),
    "a status that is not UTF-8": lambda f: f.status.write_bytes(b'{"state": "\xff"}'),
    "a status that is a folder": lambda f: f.status.mkdir(),
    "a status whose rounds are text": lambda f: f.status.write_text(
        '{"state": "running", "rounds_done": 1, "rounds": "3"}'
    ),
    "rounds that are not UTF-8": lambda f: f.rounds.write_bytes(b"\xff\xfe\n"),
    "rounds that are a folder": lambda f: lose(f.rounds).mkdir(),
    "rounds that lead in a circle": lambda f: lose(f.rounds).symlink_to(f.rounds),
    "a score that is text": lambda f: f.rounds.write_text('{"round": 1, "test_accuracy": "x"}\n'),
    "figures beyond reason": lambda f: f.rounds.write_text(
        f'{{"round": 1, "upload_bytes": 1, "dense_upload_bytes": {10**308}}}\n'
        f'{{"round": 2, "dense_upload_bytes": {10**308}}}\n'
    ),
}


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_run_does_not_hide_the_others_and_says_what_is_wrong(home, capsys, odd):
    a_run("good", RunStatus("finished", 3, 3), ROUNDS)
    folder = a_run("odd")
    ODD[odd](folder)
    runs(as_json=True)
    listed = {run["name"]: run for run in json.loads(capsys.readouterr().out)}
    assert listed["good"]["state"] == "finished"
    assert listed["odd"]["state"] == "unreadable"
    assert listed["odd"]["problem"].startswith(f"{folder.path}/")
    assert "rounds_done" not in listed["odd"]
    runs()
    printed = capsys.readouterr()
    assert "good" in printed.out
    assert printed.err == f"{listed['odd']['problem']}\n"


def test_a_link_that_leads_nowhere_is_passed_over(home):
    folder = a_run("done", RunStatus("finished", 3, 3), ROUNDS)
    (folder.path / "gone").symlink_to(folder.path / "nowhere")
    assert describe(folder, 0).state == "finished"


def test_a_run_that_was_deleted_since_it_was_listed_is_no_traceback(home):
    folder = a_run("gone")
    shutil.rmtree(folder.path)
    assert describe(folder, 0) == ListedRun(
        "gone",
        "unreadable",
        problem=f"{folder.path}: cannot be listed: {os.strerror(2)}",
    )


def test_a_live_run_replacing_its_files_does_not_disturb_who_lists_it(home):
    folder = a_run("live", RunStatus("running", 1, 3), ROUNDS)
    ended = threading.Event()

    def write():
        while not ended.is_set():
            folder.write_status(RunStatus("running", 1, 3))

    writer = threading.Thread(target=write)
    writer.start()
    states = {describe(folder, 0).state for _ in range(200)}
    ended.set()
    writer.join()
    assert states == {"unfinished"}


def test_a_run_that_failed_before_its_strategy_was_read_has_no_number_of_rounds(home):
    failure = RunFailure("ConfigError", "no such task", 3)
    listed = describe(a_run("bad", RunStatus("failed", 0, 0, failure)), 0)
    assert (listed.state, listed.rounds_done, listed.rounds) == ("failed", 0, None)


def test_a_list_in_json_holds_no_number_that_json_has_not(home, capsys):
    folder = a_run("odd", RunStatus("finished", 1, 1))
    folder.rounds.write_text('{"round": 1, "test_accuracy": NaN}\n')
    runs(as_json=True)
    (row,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert row["state"] == "finished"
    assert {"metric", "score", "upload_ratio"}.isdisjoint(row)


def test_a_score_is_listed_by_the_name_of_its_metric(home, capsys):
    a_run("r", RunStatus("finished", 1, 1), [{"round": 1, "test_r2": 0.5}])
    runs(as_json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["metric"], row["score"]) == ("r2", 0.5)


def test_a_home_that_is_no_folder_is_refused(monkeypatch, capsys):
    monkeypatch.setenv("FEDFREEZE_HOME", "/dev/null/x")
    assert exit_code(["runs"]) == 3
    assert capsys.readouterr().err == (
        f"/dev/null/x/runs: expected a folder of runs, got: {os.strerror(20)}; "
        "set FEDFREEZE_HOME to a folder that can be read and written\n"
    )


def test_the_table_has_columns_and_leaves_unknown_figures_blank():
    assert table(
        [
            ListedRun("fedfreeze-1", "finished", 30, 30, "r2", 0.8421, 104.2, 7200.0),
            ListedRun("x", "unfinished", 0, age_s=5.0),
            ListedRun("y", "finished", 3, 3, "accuracy", 0.5, 0.53, 60.0),
            ListedRun("a\nb", "unreadable", problem="torn"),
        ]
    ) == [
        "name         state       rounds  score           uplink     age",
        "fedfreeze-1  finished    30/30   r2 0.842        104x less  2 h",
        "x            unfinished  0/?                                5 s",
        "y            finished    3/3     accuracy 0.500  1.9x more  60 s",
        r"a\nb         unreadable",
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


def test_an_empty_folder_of_a_run_goes_once_nobody_can_be_about_to_write_there(
    home, flower_home, capsys
):
    old, new, written = (new_run_folder("x", name=name) for name in ("old", "new", "written"))
    (written.path / "notes").write_text("mine")
    for folder in (old, written):
        aged(folder.path, 1)
    clean()
    assert capsys.readouterr().out == "empty run old: 0 B\nFreed 0 B.\n"
    assert not old.path.exists()
    assert new.path.is_dir()
    assert (written.path / "notes").is_file()


def test_an_empty_folder_of_a_run_that_is_attended_stays(home, flower_home):
    folder = new_run_folder("x", name="live")
    aged(folder.path, 1)
    at = workspace.create("live")
    clean()
    assert folder.path.is_dir()
    workspace.remove(at.record_folder, grace_s=0)


def test_a_home_whose_record_is_still_to_be_written_is_left_alone(home, flower_home):
    fresh, old = workspace.record_folder("fresh"), workspace.record_folder("old")
    for folder in (fresh, old):
        folder.mkdir(parents=True)
    aged(old, 1)
    clean()
    assert fresh.is_dir()
    assert not old.exists()


def test_an_odd_run_does_not_keep_the_others_from_being_cleaned(home, flower_home):
    odd, old = a_run("odd"), a_run("old")
    (odd.path / "gone").symlink_to(odd.path / "nowhere")
    aged(old.path, 40)
    clean(runs_older_than=30)
    assert odd.path.is_dir()
    assert not old.path.exists()
