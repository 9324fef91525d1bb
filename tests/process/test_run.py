"""``fedfreeze run`` with Flower, Ray and torch, as a person starts it."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.process.harness import left_of

# In one group, so that simulations do not run beside each other.
pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process")]

SMALL = ("--clients", "2", "--workers", "1", "--set", "local.epochs=1", "--seed", "3")


def rounds_of(command, run):
    lines = (command.home / "runs" / run / "rounds.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_stopped_run_leaves_no_process_and_is_resumed_to_its_end(command):
    """The packets that come down after the stop need what the server kept of those before it."""
    sparse = ("--set", 'compression.downlink="sparse"')
    with command.start("run", "--name", "mine", "--rounds", "30", *SMALL, *sparse) as process:
        for line in process.stdout:
            if line.startswith("round  1/30"):
                break
        record = command.record("mine")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    done = len(rounds_of(command, "mine"))
    assert out.splitlines()[-1] == (
        f"stopped after {done} rounds; go on with: fedfreeze run --resume mine"
    )
    assert left_of(record["marker"], record["workspace"]) == []
    assert not Path(record["workspace"]).exists()

    wanted = str(done + 1)
    code, result, err = command.json("run", "--resume", "mine", "--rounds", wanted)
    assert code == 0, err
    assert result["success"] is True
    assert result["rounds"] == done + 1
    rounds = rounds_of(command, "mine")
    assert [record["round"] for record in rounds] == [*range(1, done + 2)]
    assert result["upload_bytes"] == sum(record["upload_bytes"] for record in rounds)
    assert rounds[-1]["download_bytes"] < rounds[0]["download_bytes"] / 10
    assert "failures" not in rounds[-1]
    assert all(Path(path).exists() for path in result["files"].values())
    assert set(result["files"]) == {"run", "model", "rounds", "decisions", "log"}

    code, listed, _ = command.json("runs")
    assert [(run["name"], run["state"]) for run in listed] == [("mine", "finished")]


def test_a_run_that_fails_ends_with_its_servers_exit_code_and_message(command):
    """Nobody can be in time: three void rounds, and the server gives up."""
    late = ("--set", 'clients.round-deadline="1 ms"', "--rounds", "5")
    code, result, err = command.json("run", "--name", "bad", *SMALL, *late)
    assert result["success"] is False
    assert result["error"]["type"] == "FleetError"
    assert code == result["error"]["exit_code"] == 6
    assert "3 void rounds in a row" in result["error"]["message"]
    assert result["error"]["message"] in err
    log = (command.home / "runs" / "bad" / "flower.log").read_text()
    assert "3 void rounds in a row" in log
    assert "\x1b" not in log
    assert list((command.home / "flower").iterdir()) == []


def test_a_killed_client_process_ends_the_run_with_a_clear_message(command):
    """Ray would put the dead worker back and fail every later message in no time."""
    with command.start("run", "--name", "mine", "--rounds", "30", *SMALL) as process:
        for line in process.stdout:
            if line.startswith("round  1/30"):
                break
        record = command.record("mine")
        running = left_of(record["marker"], record["workspace"])
        workers = [pid for pid, words in running if "ray::ClientAppActor" in words]
        assert workers
        os.kill(workers[0], signal.SIGKILL)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 7
    first, *_, last = err.splitlines()
    assert first.startswith("a simulation worker died (code 0: ")
    log = command.home / "runs" / "mine" / "flower.log"
    assert last == f"The run failed. Its log: {log}"
    assert left_of(record["marker"], record["workspace"]) == []


def test_a_killed_server_app_ends_the_run_long_before_flowers_heartbeat_fails(command):
    with command.start("run", "--name", "mine", "--rounds", "30", "--json", *SMALL) as process:
        for line in process.stderr:
            if line.startswith("round  1/30"):
                break
        record = command.record("mine")
        running = left_of(record["marker"], record["workspace"])
        (server_app,) = [pid for pid, words in running if "flwr-simulation" in words]
        os.kill(server_app, signal.SIGKILL)
        out, err = process.communicate(timeout=40)  # Flower itself takes almost a minute
    assert process.returncode == 7
    outcome = json.loads(out)
    assert outcome["state"] == "failed"
    assert outcome["error"]["message"].startswith(
        "the process of the server app (flwr-simulation) ended without a word: "
    )
    assert outcome["error"]["message"] in err
    assert left_of(record["marker"], record["workspace"]) == []


def test_a_run_under_nohup_outlives_its_terminal_and_a_stopped_one_prints_its_object(command):
    with command.start(
        "run", "--name", "mine", "--rounds", "30", "--json", *SMALL, prefix=["nohup"]
    ) as process:
        for line in process.stderr:
            if line.startswith("round  1/30"):
                process.send_signal(signal.SIGHUP)
            if line.startswith("round  2/30"):
                break
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    outcome = json.loads(out)
    assert (outcome["success"], outcome["state"]) == (False, "stopped")
    assert outcome["rounds"] >= 2
