"""Checkpoints: whole or absent, the last two, and what is done about torn ones."""

import json
import logging

import numpy as np
import pytest

from fedfreeze.errors import StateError
from server_app.checkpoint import Checkpoint, CheckpointFolder


@pytest.fixture
def folder(tmp_path):
    return CheckpointFolder(tmp_path / "checkpoint", "identity")


def save(folder, *numbers):
    for number in numbers:
        arrays = {"w": np.full((2, 3), number, np.float32), "n": np.array(number, np.int64)}
        state = {"round": number, "nested": {"x": [1.5, None]}}
        folder.save(Checkpoint(number, arrays, state, {"left": np.array(number, np.float32)}))


def names(tmp_path):
    return sorted(path.name for path in (tmp_path / "checkpoint").iterdir())


def number_of(folder):
    latest = folder.latest()
    assert latest is not None
    assert latest.arrays["w"].tolist() == [[latest.number] * 3] * 2
    assert latest.arrays["n"].shape == ()
    assert latest.state == {"round": latest.number, "nested": {"x": [1.5, None]}}
    assert latest.memory["left"].tolist() == latest.number
    return latest.number


def test_before_the_first_save_there_is_none(folder):
    assert folder.latest() is None


def test_the_newest_is_read_and_the_last_two_are_kept(tmp_path, folder):
    save(folder, 9, 10, 11)
    assert number_of(folder) == 11
    assert names(tmp_path) == ["round-000010", "round-000011"]


def test_a_round_saved_again_replaces_the_first(folder):
    save(folder, 3)
    folder.save(Checkpoint(3, {"w": np.zeros(1, np.float32)}, {"round": "again"}))
    assert folder.latest().state == {"round": "again"}


def damage_model(path):
    file = path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])


def replace_state(text):
    def damage(path):
        (path / "state.json").write_text(text)

    return damage


def damage_memory(path):
    file = path / "memory.safetensors"
    file.write_bytes(file.read_bytes()[:-1])


DAMAGES = {
    "model": (damage_model, "model.safetensors does not have the digest of state.json"),
    "memory": (damage_memory, "memory.safetensors does not have the digest of state.json"),
    "no state": (
        lambda path: (path / "state.json").unlink(),
        "[Errno 2] No such file or directory: '{path}/state.json'",
    ),
    "torn state": (replace_state("{"), None),
    "list": (replace_state("[]"), "list indices must be integers or slices, not str"),
    "empty object": (replace_state("{}"), "'identity'"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_when_the_newest_is_damaged_the_one_before_is_used_and_the_log_says_so(
    tmp_path, folder, caplog, kind
):
    save(folder, 1, 2)
    damage, problem = DAMAGES[kind]
    newest = tmp_path / "checkpoint" / "round-000002"
    damage(newest)
    logging.getLogger("flwr").addHandler(caplog.handler)
    try:
        assert number_of(folder) == 1
    finally:
        logging.getLogger("flwr").removeHandler(caplog.handler)
    if problem is None:
        problem = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    expected = f"checkpoint round-000002 does not read back ({problem.format(path=newest)})"
    assert expected in [record.getMessage() for record in caplog.records]


def test_when_all_are_damaged_nothing_starts_silently_afresh(tmp_path, folder):
    save(folder, 1, 2)
    for path in (tmp_path / "checkpoint").iterdir():
        damage_model(path)
    problem = "model.safetensors does not have the digest of state.json"
    with pytest.raises(StateError) as caught:
        folder.latest()
    assert str(caught.value) == (
        f"no checkpoint in {tmp_path}/checkpoint reads back (round-000002: {problem}; "
        f"round-000001: {problem}); start a new run"
    )


def test_a_checkpoint_of_another_strategy_is_refused(tmp_path, folder):
    save(folder, 1)
    with pytest.raises(StateError) as caught:
        CheckpointFolder(tmp_path / "checkpoint", "other").latest()
    assert str(caught.value) == (
        f"{tmp_path}/checkpoint/round-000001: the checkpoint is of another strategy, model or data "
        "(identity, this run is other); resume with the strategy that the run was started with"
    )


def test_a_half_written_checkpoint_is_not_seen_and_goes_with_the_next_save(tmp_path, folder):
    save(folder, 1)
    half = tmp_path / "checkpoint" / ".new-000007"
    half.mkdir()
    (half / "state.json").write_text(json.dumps({"number": 7, "identity": "identity"}))
    assert number_of(folder) == 1
    save(folder, 2)
    assert names(tmp_path) == ["round-000001", "round-000002"]


def test_a_death_between_writing_and_renaming_leaves_the_checkpoint_before(tmp_path, folder):
    """What is half written lies under a name that is never read."""
    save(folder, 1)
    with pytest.raises(TypeError):
        folder.save(Checkpoint(2, {"w": np.zeros(1, np.float32)}, {"x": object()}))
    assert number_of(folder) == 1
    save(folder, 2)
    assert number_of(folder) == 2
