import json
import os
import tomllib
from pathlib import Path

import pytest

from cli import request, workspace
from cli.flower import answer_of
from cli.main import exit_code
from cli.request import read_fleet
from cli.run import outcome, refuse_other_options, resumable
from cli.simulation import federation
from fedfreeze import run_folder
from fedfreeze.errors import ConfigError, RunError, StateError
from fedfreeze.run_folder import RunFailure, RunStatus, new_run_folder
from server_app.run_config import read

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture
def folder(home):
    return new_run_folder("x", name="mine")


def test_a_request_takes_texts_not_paths_because_a_path_means_nothing_elsewhere(folder, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text("version = 1\nrounds = 4\n")
    boards = tmp_path / "boards.toml"
    boards.write_text('[[board]]\nprofile = "laptop"\ncount = 3\n')
    asked = request.new(str(mine), str(boards), ["local.epochs=2"], seed=7)
    config = asked.run_config(folder, resume=False)
    assert config["strategy-toml"] == mine.read_text()
    assert config["fleet-toml"] == boards.read_text()
    assert config["min-nodes"] == 3
    assert config["out-dir"] == str(folder.path)
    assert asked.stem == "mine"
    assert asked.strategy.seed == 7
    assert asked.strategy.local.epochs == 2
    assert asked.strategy.fleet == str(boards)


def test_the_fleet_is_the_strategys_own_unless_another_is_asked_for(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('version = 1\nrounds = 4\nfleet = "low"\n')
    assert request.new(str(mine), None, []).fleet_text == read_fleet("low")[0]
    other = request.new(str(mine), "high", [])
    assert other.fleet_text == read_fleet("high")[0]
    assert other.strategy.fleet == "high"


def test_the_number_of_clients_is_the_fleets_size_unless_given():
    assert request.new("fedfreeze", "mixed", []).clients == read_fleet("mixed")[1].size
    assert request.new("fedfreeze", "mixed", [], clients=3).clients == 3


def test_more_boards_than_are_simulated_are_never_waited_for():
    with pytest.raises(ConfigError) as raised:
        request.new("fedfreeze", None, ["clients.min-nodes=20"])
    assert str(raised.value) == (
        "clients.min-nodes: expected at most 10, the boards that are simulated, got 20; lower it, "
        "or simulate more with --clients 20\nNothing was started."
    )
    assert request.new("fedfreeze", None, ["clients.min-nodes=20"], clients=20).clients == 20


def test_rounds_and_seed_win_over_set():
    asked = request.new("fedfreeze", None, ["rounds=5", "seed=1"], rounds=2, seed=9)
    assert (asked.strategy.rounds, asked.strategy.seed) == (2, 9)


def test_a_request_is_read_as_it_was_saved(folder):
    asked = request.new("fedavg", "low", ["local.epochs=3"], rounds=2)
    asked.save(folder)
    assert request.saved(folder) == asked


def test_the_run_config_has_exactly_the_keys_that_flower_knows(folder):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    declared = project["tool"]["flwr"]["app"]["config"]
    sent = request.new("fedfreeze", None, []).run_config(folder, resume=True)
    assert {key: type(value) for key, value in sent.items()} == {
        key: type(value) for key, value in declared.items()
    }


def test_the_server_reads_what_the_command_sends(folder):
    asked = request.new("fedavg", "low", ["local.epochs=3"], rounds=2, seed=5, clients=4)
    got = read(asked.run_config(folder, resume=True))
    assert got.strategy == asked.strategy
    assert got.fleet_toml == asked.fleet_text
    assert (got.min_nodes, got.folder, got.resume) == (4, folder, True)


def test_a_run_of_other_making_cannot_be_resumed_from_here(folder):
    with pytest.raises(ConfigError) as caught:
        request.saved(folder)
    assert str(caught.value) == (
        f'run "mine" cannot be resumed from here: expected {folder.request}, '
        "which `fedfreeze run` writes; resume it with the command that started it"
    )


def test_a_torn_request_is_refused(folder):
    request.new("fedfreeze", None, []).save(folder)
    folder.request.write_text('{"stem": "x"}')
    with pytest.raises(StateError) as caught:
        request.saved(folder)
    assert str(caught.value) == (
        f"{folder.request}: expected what `fedfreeze run` writes, got something else "
        "(KeyError('set')); start a new run"
    )


def test_a_resumed_run_is_as_it_was_but_for_its_rounds(folder):
    request.new("fedfreeze", None, [], rounds=3).save(folder)
    folder.write_status(RunStatus("finished", 3, 3))
    assert resumable(folder, 5).strategy.rounds == 5
    assert resumable(folder, 5).with_rounds(None) == resumable(folder, 5)


def test_a_finished_run_says_how_to_extend_it(folder):
    request.new("fedfreeze", None, [], rounds=3).save(folder)
    folder.write_status(RunStatus("finished", 3, 3))
    with pytest.raises(ConfigError) as caught:
        resumable(folder, None)
    assert str(caught.value) == (
        'run "mine" has finished its 3 rounds; give more to go on, such as --rounds 6'
    )


def test_a_run_that_goes_on_is_not_resumed_beside_itself(folder):
    request.new("fedfreeze", None, []).save(folder)
    at = workspace.create("mine")
    with pytest.raises(ConfigError) as caught:
        resumable(folder, None)
    workspace.remove(at.record_folder, grace_s=0)
    assert str(caught.value) == (
        f'run "mine" is still running (process {os.getpid()}); stop that first'
    )


def test_options_that_would_change_a_resumed_run_are_all_named():
    with pytest.raises(ConfigError) as caught:
        refuse_other_options({"--fleet": "low", "--set": None, "--seed": 0}, "fedavg")
    assert str(caught.value) == (
        "--resume continues a run as it was; leave out --strategy, --fleet, --seed "
        "or start a new run (only --rounds and --workers may change)"
    )
    refuse_other_options({"--fleet": None, "--set": None}, "fedfreeze")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "--strategy", "fedfreze"], 3, "no strategy file or preset"),
        (["run", "--fleet", "hihg"], 3, "hihg"),
        (["run", "--set", "local.epoch=2"], 3, "--set local.epoch"),
        (["run", "--resume", "nobody"], 3, 'there is no run "nobody"'),
        (["run", "--rounds", "0"], 2, "--rounds"),
    ],
)
def test_a_mistake_ends_the_command_before_anything_is_made(home, capsys, arguments, code, said):
    assert exit_code(arguments) == code
    assert said in capsys.readouterr().err
    assert run_folder.all_runs() == []


def test_an_outcome_names_no_figure_that_is_not_known(folder):
    failure = RunFailure("FleetError", "1 of 2", 6)
    assert outcome(folder, failure, 1.23456) == {
        "success": False,
        "name": "mine",
        "rounds": 0,
        "elapsed_s": 1.235,
        "files": {"run": str(folder.path)},
        "error": {"type": "FleetError", "message": "1 of 2", "exit_code": 6},
    }


def test_an_outcome_is_json_with_the_figures_of_the_rounds(folder):
    record = {"round": 1, "test_accuracy": 0.5, "upload_bytes": 4, "dense_upload_bytes": 100}
    folder.rounds.write_text(json.dumps(record) + "\n")
    got = json.loads(json.dumps(outcome(folder, None, 2.0)))
    assert got["success"] is True
    assert (got["final_accuracy"], got["upload_bytes"], got["upload_ratio"]) == (0.5, 4, 25.0)
    assert set(got["files"]) == {"run", "rounds"}


def test_a_gpu_is_shared_among_the_workers_without_asking_for_more_than_one():
    assert federation(10, 3, device="cuda").endswith(" client-resources-num-gpus=0.333")
    assert "gpus" not in federation(10, 3, device="auto")


@pytest.mark.parametrize(
    ("printed", "complained", "message"),
    [
        ("", "Traceback: no\n", "expected JSON from `flwr run`, got: Traceback: no"),
        ("Oops {", "", "expected JSON from `flwr run`, got: Oops {"),
        (
            '{"success": false, "error-message": "[code: 15] Invalid\\n"}',
            "",
            "`flwr run` failed: [code: 15] Invalid",
        ),
        ('{"run-id": "1"}', "", "`flwr run` failed: {'run-id': '1'}"),
    ],
)
def test_an_answer_that_is_no_success_is_an_error_whatever_the_exit_code(
    printed, complained, message
):
    with pytest.raises(RunError) as caught:
        answer_of("flwr run", printed, complained)
    assert str(caught.value) == message
