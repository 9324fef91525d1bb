"""``flwr run .`` from the checkout, as Flower's users know it."""

import hashlib
import json
import subprocess
import time
from pathlib import Path

import pytest

from cli.superlink import CONNECTION, private_superlink, program
from strategies.schema import presets
from tests.process.harness import ROOT

# In one group, so that simulations do not run beside each other.
pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process")]

LIMIT_S = 200


def flwr(superlink, *arguments):
    """One ``flwr`` command; its JSON. Flower's exit code is 0 whatever happens."""
    done = subprocess.run(
        [program("flwr", superlink.env["PATH"]), *arguments, "--format", "json"],
        env=superlink.env,
        cwd=superlink.workspace.cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answer = json.loads(done.stdout[done.stdout.index("{") :])
    assert answer["success"], answer
    return answer


def run(superlink, *run_config, nodes=2):
    words = [word for config in run_config for word in ("--run-config", config)]
    size = f"num-supernodes={nodes} client-resources-num-cpus=1 init-args-num-cpus=1"
    run_id = flwr(
        superlink, "run", str(ROOT), CONNECTION, "--federation-config", size, *words
    )["run-id"]  # fmt: skip
    end_s = time.monotonic() + LIMIT_S
    while time.monotonic() < end_s:
        (state,) = flwr(superlink, "list", CONNECTION, "--run-id", str(run_id))["runs"]
        if state["status"].startswith("finished"):
            return state["status"]
        time.sleep(1)
    raise TimeoutError(state)


def model_digest(folder):
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def test_flwr_run_from_the_checkout_completes_and_gives_the_bytes_of_fedfreeze_run(
    command, tmp_path, monkeypatch
):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "other"))
    with private_superlink("checkout") as superlink:
        words = f"set='rounds=2 local.epochs=1' out-dir='{tmp_path / 'run'}'"
        assert run(superlink, "strategy='fedfreeze'", words) == "finished:completed"
        status = json.loads((tmp_path / "run" / "status.json").read_text())
        assert status["state"] == "finished"
    code, _, err = command.finish(
        "run", "--rounds", "2", "--set", "local.epochs=1", "--clients", "2", "--name", "same"
    )
    assert code == 0, err
    ours = Path(command.home) / "runs" / "same"
    assert model_digest(ours) == model_digest(tmp_path / "run")


def test_a_wrong_run_config_ends_in_our_own_words(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "other"))
    out = tmp_path / "run"
    out.mkdir()
    with private_superlink("checkout") as superlink:
        words = f"strategy='fedavgg' out-dir='{out}'"
        assert run(superlink, words) == "finished:failed"
    error = json.loads((out / "status.json").read_text())["error"]
    assert error["type"] == "ConfigError"
    assert error["message"] == (
        f"run-config strategy: expected one of {', '.join(presets())}, got 'fedavgg'; "
        "for a file of your own use `fedfreeze run --strategy FILE`\nNothing was started."
    )
