"""A private SuperLink comes up, and nothing of it stays, however its owner ends."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from cli.superlink import is_healthy, private_superlink
from tests.process.harness import ROOT, left_of

# In one group, so that simulations do not run beside each other.
pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process")]

OWNER = """\
import json, sys, time
sys.path.insert(0, sys.argv[1])
from cli.superlink import private_superlink
with private_superlink("owned") as superlink:
    record = superlink.workspace.record
    print(json.dumps([record.marker, record.workspace]), flush=True)
    time.sleep(600)
"""


def port_of(superlink):
    config = (superlink.workspace.flower_home / "config.toml").read_text()
    return int(config.partition("127.0.0.1:")[2].partition('"')[0])


def test_a_private_superlink_answers_until_its_block_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path))
    with private_superlink("mine") as superlink:
        port = port_of(superlink)
        record = superlink.workspace.record
        assert is_healthy(port)
        assert superlink.problem() is None
        assert left_of(record.marker, record.workspace)
    assert not is_healthy(port)
    assert left_of(record.marker, record.workspace) == []
    assert not superlink.workspace.path.exists()
    assert list((tmp_path / "flower").iterdir()) == []


def test_two_private_superlinks_stand_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path))
    with private_superlink("a") as first, private_superlink("b") as second:
        assert port_of(first) != port_of(second)
        assert first.problem() is None
        assert second.problem() is None


def test_a_dead_superexec_is_noticed_because_runs_would_stay_pending(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path))
    with private_superlink("mine") as superlink:
        executors = []
        while not executors:
            executors = [
                child
                for child in psutil.Process(superlink._process.pid).children()
                if "flower-superexec" in " ".join(child.cmdline())
            ]
        assert superlink.problem() is None
        executors[0].kill()
        psutil.wait_procs(executors, timeout=5)
        assert superlink.problem() == ("Flower's SuperExec, which starts the server app, has died")
        superlink._process.kill()
        superlink._process.wait()
        assert superlink.problem() == "the SuperLink ended with exit code -9"


def test_a_killed_owner_leaves_no_process_and_no_folder(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(ROOT)],
        env={**os.environ, "FEDFREEZE_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        marker, workspace = json.loads(owner.stdout.readline())
        guardians = [
            child
            for child in psutil.Process(owner.pid).children()
            if str(tmp_path) in " ".join(child.cmdline())
        ]
        assert len(guardians) == 1
        owner.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(guardians, timeout=30)
    assert alive == []
    assert left_of(marker, workspace) == []
    assert not os.path.exists(workspace)  # noqa: PTH110  # it is a name from the other process
    assert list((tmp_path / "flower").iterdir()) == []
