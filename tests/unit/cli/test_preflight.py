"""What is wrong with a run shows before anything is started."""

import subprocess
import sys

from cli.command_line import exit_code
from cli.named_files import at_hand
from fedfreeze.run_folder import runs_home
from strategies.schema import load


def test_a_run_that_cannot_start_leaves_no_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path))
    monkeypatch.delenv("FEDFREEZE_DATA_DIR", raising=False)
    assert exit_code(["run", "--set", "task=cifar10", "--name", "mine"]) == 3
    assert "CIFAR-10 does not ship with the project" in capsys.readouterr().err
    assert not (runs_home() / "mine").exists()


def test_check_looks_into_the_task(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("tusk = 1\n")
    path = tmp_path / "mine.toml"
    path.write_text('version = 1\nrounds = 1\ntask = "mine.py"\n')
    assert exit_code(["check", str(path)]) == 3
    assert capsys.readouterr().err == (
        f'task "{tmp_path / "mine.py"}": expected {tmp_path / "mine.py"} to have an attribute '
        '"task" that is a fedfreeze.Task, got none\n'
    )


def test_files_are_looked_for_beside_the_strategy(tmp_path):
    for name in ("mine.py", "weights.safetensors"):
        (tmp_path / name).write_text("")
    path = tmp_path / "mine.toml"
    path.write_text(
        'version = 1\nrounds = 1\ntask = "mine.py"\n[model]\npretrained = "weights.safetensors"\n'
    )
    here = at_hand(load(str(path)), str(path))
    assert here.task == str(tmp_path / "mine.py")
    assert here.model.pretrained == str(tmp_path / "weights.safetensors")


def test_names_that_are_no_files_stay_as_they_are():
    strategy = load("fedfreeze", ["model.pretrained=hub"])
    assert at_hand(strategy, "fedfreeze") == strategy


def test_the_command_that_follows_a_run_holds_no_torch():
    code = "import sys, cli.run, cli.check; print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
