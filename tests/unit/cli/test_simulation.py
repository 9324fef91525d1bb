import pytest

from cli.simulation import _prepare, _workers
from fedfreeze.run_folder import RunFolder, RunStatus

GB = 1_000_000_000


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_status(RunStatus("running", 1, 3))
    folder.simulated_boards.mkdir()
    for path in (folder.rounds, folder.decisions, folder.flower_log, folder.path / "my-notes"):
        path.write_text("{}\n")
    return folder


def names(folder):
    return {path.name for path in folder.path.iterdir()}


def test_with_a_checkpoint_everything_stays_but_the_old_state(folder):
    before = names(folder)
    (folder.checkpoint / "round-000001").mkdir(parents=True)
    assert _prepare(folder) is True
    assert names(folder) == before - {"status.json"} | {"checkpoint"}


def test_a_checkpoint_that_was_never_completed_is_none_and_the_run_begins_anew(folder):
    (folder.checkpoint / ".new-000001").mkdir(parents=True)
    assert _prepare(folder) is False
    assert names(folder) == {"flower.log", "my-notes"}


def test_a_new_folder_is_ready_as_it_is(tmp_path):
    assert _prepare(RunFolder(tmp_path)) is False
    assert names(RunFolder(tmp_path)) == set()


@pytest.mark.parametrize(
    ("clients", "cores", "memory_bytes", "workers"),
    [(10, 4, 64 * GB, 4), (3, 4, 64 * GB, 3), (10, 16, 5 * GB, 4), (10, 4, 0, 1)],
)
def test_as_many_workers_as_cores_clients_and_memory_allow(clients, cores, memory_bytes, workers):
    assert _workers(clients, cores, memory_bytes) == workers
