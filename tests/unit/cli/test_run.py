import json
import os
import signal
import tomllib
from pathlib import Path

import pytest
import typer

from cli import request, workspace
from cli.command_line import exit_code
from cli.flower import answer_of
from cli.request import read_fleet
from cli.run import attend, outcome, refuse_other_options, resumable
from cli.simulation import federation
from fedfreeze import run_folder
from fedfreeze.errors import ConfigError, FedFreezeError, RunError, StateError
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


def test_a_fleet_that_there_is_not_is_refused_in_the_words_that_were_typed():
    with pytest.raises(ConfigError) as raised:
        request.new("fedfreeze", "mixd", [])
    assert str(raised.value) == (
        'unknown fleet "mixd"; the fleets are evening, high, low, mid, mixed, or give a path that '
        'ends in .toml; did you mean "mixed"?'
    )


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
        "state": "failed",
        "name": "mine",
        "rounds": 0,
        "elapsed_s": 1.235,
        "files": {"run": str(folder.path)},
        "error": {"type": "FleetError", "message": "1 of 2", "exit_code": 6},
    }


def test_an_outcome_is_json_with_the_figures_of_the_rounds(folder):
    record = {"round": 1, "test_accuracy": 0.5, "upload_bytes": 4, "dense_upload_bytes": 100}
    record |= {"download_bytes": 6, "dense_download_bytes": 100}
    record["modelled_energy_total_j"] = 7.5
    folder.rounds.write_text(json.dumps(record) + "\n")
    got = json.loads(json.dumps(outcome(folder, None, 2.0)))
    assert got["success"] is True
    assert (got["final_accuracy"], got["upload_bytes"], got["upload_ratio"]) == (0.5, 4, 25.0)
    assert (got["download_bytes"], got["dense_download_bytes"]) == (6, 100)
    assert got["traffic_ratio"] == 20.0
    assert got["modelled_energy_total_j"] == 7.5
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


def test_an_answer_that_is_no_json_is_quoted_from_the_start_of_a_line():
    traceback = "".join(f"  File number {number} of a traceback\n" for number in range(99))
    with pytest.raises(RunError) as caught:
        answer_of("flwr run", "", traceback + "ValueError: no\n")
    first, *rest = str(caught.value).splitlines()
    assert first.startswith("expected JSON from `flwr run`, got:   File number ")
    assert rest[-1] == "ValueError: no"


def ended(work, folder, capsys, *, as_json):
    """The exit code of some work, the lines that were said, and what was printed."""
    said = []
    try:
        attend(work, folder, said.append, as_json=as_json)
        code = 0
    except typer.Exit as end:
        code = end.exit_code
    except FedFreezeError as error:
        code = error.exit_code
    return code, said, capsys.readouterr()


@pytest.fixture
def heeded():
    """Signals that are heeded even where the tests run with some of them ignored."""

    def escaped(number, frame):
        raise AssertionError(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, escaped) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def stop(number):
    def work():
        os.kill(os.getpid(), number)

    return work


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_run_says_how_to_go_on_and_still_prints_its_object(
    folder, capsys, heeded, number
):
    folder.rounds.write_text('{"round": 1, "test_accuracy": 0.5}\n')
    folder.write_status(RunStatus("running", 1, 3))
    code, said, printed = ended(stop(number), folder, capsys, as_json=True)
    assert code == 130
    assert said == ["stopped after 1 rounds; go on with: fedfreeze run --resume mine"]
    got = json.loads(printed.out)
    assert (got["success"], got["state"], got["rounds"], got["final_accuracy"]) == (
        False,
        "stopped",
        1,
        0.5,
    )
    assert "error" not in got


def test_a_run_that_was_stopped_when_all_was_done_is_finished(folder, capsys, heeded):
    folder.write_status(RunStatus("finished", 3, 3))
    code, said, printed = ended(stop(signal.SIGTERM), folder, capsys, as_json=True)
    assert code == 130
    assert said == [f"stopped, but the run is finished: {folder.path}"]
    got = json.loads(printed.out)
    assert (got["success"], got["state"]) == (True, "finished")


def test_a_stopped_run_whose_files_are_torn_still_says_that_it_stopped(folder, capsys, heeded):
    folder.status.write_text("{")
    folder.rounds.mkdir()
    code, said, printed = ended(stop(signal.SIGTERM), folder, capsys, as_json=True)
    assert (code, json.loads(printed.out)["state"]) == (130, "stopped")
    assert said == ["stopped after ? rounds; go on with: fedfreeze run --resume mine"]


def test_a_run_that_cannot_be_started_prints_its_object_too(folder, capsys):
    def work():
        raise RunError("no SuperLink")

    code, _, printed = ended(work, folder, capsys, as_json=True)
    assert code == 7
    assert json.loads(printed.out)["error"] == {
        "type": "RunError",
        "message": "no SuperLink",
        "exit_code": 7,
    }


def test_a_failed_run_prints_its_message_and_its_log(folder, capsys):
    failure = RunFailure("FleetError", "1 of 2", 6)
    code, said, printed = ended(lambda: failure, folder, capsys, as_json=False)
    assert (code, said) == (6, [])
    assert printed.err == f"1 of 2\nThe run failed. Its log: {folder.flower_log}\n"


def test_the_object_of_a_run_is_json_even_where_its_figures_are_not_finite(folder, capsys):
    folder.rounds.write_text('{"round": 1, "test_accuracy": NaN, "upload_bytes": 1e999}\n')
    folder.write_status(RunStatus("finished", 1, 1))
    code, _, printed = ended(lambda: None, folder, capsys, as_json=True)
    assert code == 0
    got = json.loads(printed.out, parse_constant=pytest.fail)
    assert set(got) == {"success", "state", "name", "rounds", "elapsed_s", "files"}


@pytest.mark.parametrize(("metric", "name"), [("accuracy", "final_accuracy"), ("r2", "final_r2")])
def test_a_final_score_goes_by_the_name_of_its_metric(folder, metric, name):
    folder.rounds.write_text(json.dumps({"round": 1, f"test_{metric}": 0.5}) + "\n")
    assert outcome(folder, None, 1.0)[name] == 0.5


@pytest.mark.parametrize("place", ["/dev/null/x", "/proc/nope"])
def test_a_home_that_cannot_be_used_is_a_mistake_and_no_traceback(monkeypatch, capsys, place):
    monkeypatch.setenv("FEDFREEZE_HOME", place)
    assert exit_code(["run"]) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"{place}")
    assert ": expected to write there, got: " in err
    assert err.endswith(
        "; make room or change its permissions, or set FEDFREEZE_HOME to another folder\n"
    )


def test_a_resumed_run_whose_files_cannot_be_replaced_is_refused(folder, capsys):
    request.new("fedfreeze", None, []).save(folder)
    folder.config.mkdir()
    assert exit_code(["run", "--resume", "mine"]) == 3
    assert f"{folder.config}: expected to write there, got: " in capsys.readouterr().err


def test_a_request_that_is_no_file_is_refused(folder):
    folder.request.mkdir()
    with pytest.raises(StateError) as caught:
        request.saved(folder)
    assert str(caught.value) == (
        f"{folder.request}: expected a file that can be read, got: {os.strerror(21)}; "
        "start a new run"
    )


def test_a_stored_strategy_that_was_edited_may_begin_with_a_byte_order_mark(folder):
    asked = request.new("fedfreeze", None, [])
    asked.save(folder)
    for path in (folder.strategy, folder.fleet):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert request.saved(folder) == asked
