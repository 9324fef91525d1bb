"""``fedfreeze train-central``: what it prints, and that a seed repeats it."""

import json

import pytest

from cli.command_line import exit_code
from cli.train_central import best, epoch_line, final
from tasks.metric import MEAN_ABSOLUTE_ERROR, R2

QUICK = ["train-central", "--strategy", "full", "--set", "task=tests.tiny_task"]


@pytest.fixture(autouse=True)
def _nobody_named_a_folder(monkeypatch):
    monkeypatch.delenv("FEDFREEZE_DATA_DIR", raising=False)


def numbers(capsys, *arguments):
    assert exit_code([*QUICK, *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    del found["elapsed_s"]
    for epoch in found["epochs"]:
        del epoch["train_s"]
    return found


def test_the_same_seed_gives_the_same_numbers_and_another_one_others(capsys):
    first = numbers(capsys, "--epochs", "2", "--seed", "4")
    assert numbers(capsys, "--epochs", "2", "--seed", "4") == first
    assert numbers(capsys, "--epochs", "2", "--seed", "5")["epochs"] != first["epochs"]


def test_json_tells_epochs_examples_and_where_it_came_from(capsys):
    found = numbers(capsys, "--epochs", "4")
    assert (found["success"], found["task"], found["source"]) == (
        True,
        "tests.tiny_task",
        "random numbers",
    )
    assert found["weights"] == "random weights"
    assert [epoch["epoch"] for epoch in found["epochs"]] == [1, 2, 3, 4]
    last = [epoch["test_accuracy"] for epoch in found["epochs"][1:]]
    assert found["test_accuracy"] == pytest.approx(sum(last) / 3)


def test_as_many_epochs_as_a_client_makes_passes_unless_said_otherwise(capsys):
    found = numbers(capsys, "--set", "rounds=2", "--set", "local.epochs=3")
    assert len(found["epochs"]) == 6


def test_a_person_sees_a_line_an_epoch_and_the_final_figure(capsys):
    assert exit_code([*QUICK, "--epochs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tests.tiny_task on random numbers: ")
    assert lines[1].startswith("epoch 1/2  loss ")
    assert lines[2].startswith("epoch 2/2  loss ")
    assert lines[4].startswith("accuracy   ")
    assert lines[4].endswith("  (test, mean of the last 2 epochs)")
    assert lines[5].startswith("at best    ")


def test_progress_of_a_script_goes_to_standard_error(capsys):
    assert exit_code([*QUICK, "--epochs", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err.splitlines()[1].startswith("epoch 1/1  loss ")


def test_divergence_ends_with_the_runs_code(capsys):
    diverging = ["--set", "local.learning-rate=1e30", "--set", "local.warm-up-rounds=0"]
    assert exit_code([*QUICK, "--epochs", "3", *diverging]) == 7
    assert "pooled training diverged in epoch" in capsys.readouterr().err


LINE = """
import torch
from torch import nn
from torch.nn import functional
from tasks.dataset import Dataset, Examples
from tasks.inputs import Values
from tasks.metric import MEAN_ABSOLUTE_ERROR
from tasks.task import Task


def read(place):
    inputs = torch.linspace(-1, 1, 40)[:, None]
    return Dataset(Examples(inputs, 3 * inputs), Examples(inputs, 3 * inputs), "a line")


task = Task(
    "line",
    Values((1,)),
    read,
    lambda: nn.Sequential(nn.Linear(1, 1)),
    outputs=1,
    loss=functional.mse_loss,
    metrics=(MEAN_ABSOLUTE_ERROR,),
)
"""


def test_a_task_of_numbers_trains_too(tmp_path, monkeypatch, capsys):
    (tmp_path / "line.py").write_text(LINE)
    monkeypatch.chdir(tmp_path)
    changes = ["--set", "task=line.py", "--set", "data.partition=iid"]
    assert exit_code(["train-central", "--epochs", "40", *changes, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["task"] == "line"
    assert found["test_mean_absolute_error"] < 0.1  # 1.5 of a model that always says 0


def test_it_beats_chance_by_far_on_the_default_task(capsys):
    assert exit_code(["train-central", "--epochs", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["examples"] == {"train": 2700, "validation": 300, "test": 600}
    assert found["test_accuracy"] > 0.3


def test_an_epochs_line_takes_the_tasks_own_metric():
    figures = {"epoch": 1, "epochs": 10, "train_loss": 2.0, "validation_r2": 0.5, "test_r2": 0.25}
    assert epoch_line(figures, "r2") == "epoch  1/10  loss 2.00  r2: validation 0.500  test 0.250"


def test_the_final_figures_are_means_of_the_last_three_epochs_of_every_test_metric():
    epochs = [{"test_loss": 4.0 - n, "test_r2": n / 4, "validation_r2": 1.0} for n in range(4)]
    assert final(epochs) == {"test_loss": 2.0, "test_r2": 0.5}


def test_the_best_epoch_is_chosen_by_validation_and_never_by_test():
    epochs = [
        {"epoch": 1, "validation_r2": 0.2, "test_r2": 0.9, "test_loss": 1.0},
        {"epoch": 2, "validation_r2": 0.7, "test_r2": 0.4, "test_loss": 2.0},
        {"epoch": 3, "validation_r2": 0.7, "test_r2": 0.5, "test_loss": 3.0},
    ]
    assert best(epochs, R2) == {"epoch": 2, "test_r2": 0.4, "test_loss": 2.0}


def test_the_best_error_is_the_smallest():
    name = MEAN_ABSOLUTE_ERROR.name
    epochs = [{"epoch": n, f"validation_{name}": n, f"test_{name}": 0.0} for n in (1, 2)]
    assert best(epochs, MEAN_ABSOLUTE_ERROR)["epoch"] == 1


def test_without_validation_examples_nothing_is_trained(capsys):
    assert exit_code(["train-central", "--set", "data.validation-share=0.0001"]) == 3
    said = capsys.readouterr()
    assert said.err == (
        "data.validation-share: 0.0001 of the 3000 training examples of task "
        '"fashion-cnn" is not one; raise it\n'
    )
    assert said.out == ""
