import json
import os
from datetime import datetime

import pytest

from fedfreeze.errors import ConfigError, FleetError, StateError
from fedfreeze.run_folder import (
    RunFailure,
    RunFolder,
    RunStatus,
    all_runs,
    find_run,
    new_run_folder,
    runs_home,
)

NOON = datetime.fromisoformat("2026-05-04T12:00:00")


@pytest.mark.parametrize(
    "status",
    [
        RunStatus("running", 0, 30),
        RunStatus("finished", 30, 30, summary={"upload_bytes": 7}),
        RunStatus("failed", 2, 30, error=RunFailure.of(FleetError("1 of 2"))),
    ],
)
def test_a_status_is_read_as_it_was_written(tmp_path, status):
    folder = RunFolder(tmp_path)
    folder.write_status(RunStatus("running", 0, 1))
    folder.write_status(status)
    assert folder.read_status() == status
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_before_the_server_wrote_a_status_there_is_none(tmp_path):
    assert RunFolder(tmp_path).read_status() is None


def test_an_absent_error_is_absent_in_the_file(tmp_path):
    RunFolder(tmp_path).write_status(RunStatus("running", 1, 2))
    text = (tmp_path / "status.json").read_text()
    assert text == '{"state": "running", "rounds_done": 1, "rounds": 2}'


@pytest.mark.parametrize("text", ["", "[]", '{"state": "running"}', '{"state": "running", "rou'])
def test_a_torn_or_foreign_status_is_refused_with_what_stands_there(tmp_path, text):
    (tmp_path / "status.json").write_text(text)
    with pytest.raises(StateError) as caught:
        RunFolder(tmp_path).read_status()
    assert str(caught.value) == (
        f"{tmp_path}/status.json: expected a run's state, got {text!r}; "
        "delete the file if the run is over"
    )


def test_an_unknown_state_is_refused(tmp_path):
    (tmp_path / "status.json").write_text('{"state": "done", "rounds_done": 1, "rounds": 1}')
    with pytest.raises(StateError) as caught:
        RunFolder(tmp_path).read_status()
    assert str(caught.value) == (
        f"{tmp_path}/status.json: state is one of running, finished, failed, got 'done'"
    )


def test_a_foreign_exception_ends_a_run_with_exit_code_7():
    assert RunFailure.of(ZeroDivisionError("oh")) == RunFailure("ZeroDivisionError", "oh", 7)
    assert RunFailure.of(FleetError("few")) == RunFailure("FleetError", "few", 6)


def test_a_run_is_named_after_its_strategy_and_the_local_time(tmp_path):
    folder = new_run_folder("fedfreeze", root=tmp_path / "deep" / "runs", now=NOON)
    assert folder.name == "fedfreeze-20260504-120000"
    assert folder.path.is_dir()


def test_two_runs_of_one_second_get_two_folders(tmp_path):
    names = [new_run_folder("full", root=tmp_path, now=NOON).name for _ in range(3)]
    assert names == [
        "full-20260504-120000",
        "full-20260504-120000-2",
        "full-20260504-120000-3",
    ]


@pytest.mark.parametrize(
    ("stem", "name"),
    [("my strategy", "my-strategy"), ("../../etc", "etc"), ("", "run"), ("é", "run")],
)
def test_a_stem_that_is_no_plain_name_is_made_one(tmp_path, stem, name):
    folder = new_run_folder(stem, root=tmp_path, now=NOON)
    assert folder.path == tmp_path / f"{name}-20260504-120000"


def test_a_taken_name_is_refused_with_both_ways_out(tmp_path):
    new_run_folder("x", name="mine", root=tmp_path)
    with pytest.raises(ConfigError) as caught:
        new_run_folder("x", name="mine", root=tmp_path)
    assert str(caught.value) == (
        f'there is a run "mine" in {tmp_path}; choose another --name, '
        "or continue it with --resume mine"
    )


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", ".hidden", "a" * 101])
def test_a_name_that_would_leave_the_folder_is_refused(tmp_path, name):
    with pytest.raises(ConfigError) as caught:
        new_run_folder("x", name=name, root=tmp_path)
    assert str(caught.value) == (
        'a run\'s name is letters, digits, ".", "_" and "-" and begins with a letter or digit, '
        f'got "{name}"'
    )
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_found_by_its_name_or_its_path(tmp_path):
    folder = new_run_folder("x", name="mine", root=tmp_path)
    folder.request.write_text("{}")
    assert find_run("mine", tmp_path) == folder
    assert find_run(str(folder.path), tmp_path / "elsewhere") == folder


def test_a_run_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    new_run_folder("x", name="mine", root=tmp_path)
    with pytest.raises(ConfigError) as caught:
        find_run("yours", tmp_path)
    assert (
        str(caught.value) == f'there is no run "yours" in {tmp_path}; the latest runs there: mine'
    )


@pytest.mark.parametrize("name", ["", ".", "/", ".."])
def test_a_folder_that_holds_no_run_is_not_taken_for_one(tmp_path, name, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    with pytest.raises(ConfigError) as caught:
        find_run(name, tmp_path)
    assert str(caught.value) == (
        f'there is no run "{name}" in {tmp_path}; the latest runs there: inner'
    )


def test_where_nothing_ran_the_list_is_empty(tmp_path):
    assert all_runs(tmp_path / "nowhere") == []


def test_the_environment_moves_the_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path))
    assert runs_home() == tmp_path / "runs"


@pytest.mark.parametrize(
    "text",
    [
        '{"state": "running", "rounds_done": 1, "rounds": "3"}',
        '{"state": "running", "rounds_done": true, "rounds": 3}',
        '{"state": "running", "rounds_done": 1e999, "rounds": 3}',
        '{"state": "failed", "rounds_done": 1, "rounds": 3, "error": "no"}',
        '{"state": "finished", "rounds_done": 1, "rounds": 3, "summary": [1]}',
        "[" * 5000,
    ],
)
def test_a_status_of_other_types_is_refused(tmp_path, text):
    (tmp_path / "status.json").write_text(text)
    with pytest.raises(StateError) as caught:
        RunFolder(tmp_path).read_status()
    assert str(caught.value) == (
        f"{tmp_path}/status.json: expected a run's state, got {text!r:.100}; "
        "delete the file if the run is over"
    )


def test_a_status_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "status.json").write_bytes(b"\xff")
    with pytest.raises(StateError) as caught:
        RunFolder(tmp_path).read_status()
    assert str(caught.value) == (
        f"{tmp_path}/status.json: expected a run's state, got '\ufffd'; "
        "delete the file if the run is over"
    )


def test_a_status_that_is_a_folder_is_refused(tmp_path):
    (tmp_path / "status.json").mkdir()
    with pytest.raises(StateError) as caught:
        RunFolder(tmp_path).read_status()
    assert str(caught.value) == (
        f"{tmp_path}/status.json: expected a file that can be read, got: {os.strerror(21)}; "
        "move it away if the run is over"
    )


def test_a_figure_that_is_not_finite_is_absent_from_a_status(tmp_path):
    summary = {"loss": float("nan"), "upload_bytes": 7}
    RunFolder(tmp_path).write_status(RunStatus("finished", 1, 1, summary=summary))
    text = (tmp_path / "status.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["summary"] == {"upload_bytes": 7}


@pytest.mark.parametrize("place", ["/dev/null/x", "/proc/nope"])
def test_a_place_that_cannot_be_written_is_refused_with_what_to_do(place, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", place)
    with pytest.raises(ConfigError) as caught:
        new_run_folder("x")
    why = os.strerror(20 if place.startswith("/dev") else 2)
    named = str(caught.value).partition(":")[0]
    assert named in {place, f"{place}/runs"}
    assert str(caught.value) == (
        f"{named}: expected to write there, got: {why}; make room or change its permissions, "
        "or set FEDFREEZE_HOME to another folder"
    )


def test_a_home_of_a_user_who_is_not_there_is_refused(monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", "~no-such-user/runs")
    with pytest.raises(ConfigError) as caught:
        runs_home()
    assert str(caught.value) == (
        "expected a folder for runs, got ~no-such-user/runs, and there is no such home; "
        "set FEDFREEZE_HOME to a folder that can be written"
    )


@pytest.mark.parametrize("name", ["a" * 5000, "x/" * 3000, "~no-such-user/run", "a\0b"])
def test_a_name_that_no_file_can_have_is_answered_like_any_other(tmp_path, name):
    with pytest.raises(ConfigError) as caught:
        find_run(name, tmp_path)
    assert str(caught.value) == (
        f'there is no run "{name}" in {tmp_path}; the latest runs there: none'
    )


def test_runs_are_listed_latest_first_and_what_is_no_folder_is_passed_over(tmp_path):
    for moment, name in enumerate(("b", "a", "c")):
        new_run_folder("x", name=name, root=tmp_path)
        os.utime(tmp_path / name, (moment, moment))
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert [run.name for run in all_runs(tmp_path)] == ["c", "a", "b"]


def test_a_run_was_written_when_its_latest_file_was(tmp_path):
    (tmp_path / "old").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    os.utime(tmp_path / "link", (900, 900), follow_symlinks=False)
    os.utime(tmp_path / "old", (100, 100))
    os.utime(tmp_path, (500, 500))
    assert RunFolder(tmp_path).written_at_s() == 900
    assert not RunFolder(tmp_path).is_empty
