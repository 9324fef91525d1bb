import json
import stat

import pytest

from cli import processes, workspace
from cli.workspace import create, read_record, record_folder, remove


@pytest.fixture
def made(home):
    at = create("mine")
    yield at
    remove(at.record_folder, grace_s=0)


def test_a_workspace_is_private_and_its_path_short_enough_for_rays_sockets(made):
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o700
    ray = "/ray/session_2026-11-30_12-29-54_986567_1234567/sockets/plasma_store.sock"
    assert len(f"{made.path}{ray}") <= 107
    assert list(made.cwd.iterdir()) == []


def test_the_record_survives_its_writer(made):
    assert read_record(record_folder("mine")) == made.record
    assert made.record.owner_is_alive
    assert not processes.family(made.record.marker)


def test_removing_a_record_removes_the_workspace_too(made):
    assert remove(made.record_folder, grace_s=0) == 0
    assert not made.path.exists()
    assert not made.record_folder.exists()


def test_removing_what_is_not_there_does_nothing(home):
    assert remove(record_folder("nobody"), grace_s=0) == 0


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"marker": "x"}'])
def test_a_torn_record_is_no_record(home, content):
    folder = record_folder("torn")
    folder.mkdir(parents=True)
    (folder / "process.json").write_text(content)
    assert read_record(folder) is None


def test_a_record_that_names_a_folder_of_somebody_else_deletes_nothing_there(home, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    folder = record_folder("evil")
    folder.mkdir(parents=True)
    record = {"marker": "m", "owner_pid": 1, "owner_created_at_s": 0.0, "workspace": str(precious)}
    (folder / "process.json").write_text(json.dumps(record))
    remove(folder, grace_s=0)
    assert precious.is_dir()
    assert not folder.exists()


def test_two_workspaces_of_one_run_do_not_share_a_folder(home):
    first, second = create("a"), create("b")
    assert first.path != second.path
    assert first.record.marker != second.record.marker
    for at in (first, second):
        workspace.remove(at.record_folder, grace_s=0)
