"""A task.py of Flower's quickstarts goes through whole rounds as it stands."""

from __future__ import annotations

import numpy as np
import pytest

from cli.division import divide
from strategies.schema import load as load_strategy
from tasks.loading import load
from tests.conftest import records

QUICKSTART = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 16)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def load_data(partition_id: int, num_partitions: int, batch_size: int):
    generator = torch.Generator().manual_seed(7)
    values = torch.randn(300, 6, generator=generator)[partition_id::num_partitions]
    rows = [{"img": row, "label": int(row[:3].argmax())} for row in values]
    held_out = len(rows) // 5
    return (
        DataLoader(rows[held_out:], batch_size=batch_size, shuffle=True),
        DataLoader(rows[:held_out], batch_size=batch_size),
    )
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "task.py"
    path.write_text(QUICKSTART)
    return path


def test_it_trains_and_the_worst_served_clients_are_measured(path, small_run):
    run = small_run(
        f"task='{path}'",
        "fleet=high",
        "rounds=6",
        "local.epochs=8",
        "compression.compression-ratio=2",
        nodes=3,
    )
    run.play()
    first, *_, last = records(run.folder)
    assert last["test_accuracy"] > max(0.6, first["test_accuracy"])
    assert 0 < last["client_accuracy_worst_tenth"] <= last["client_accuracy_mean"]


def test_how_it_divides_its_data_can_be_looked_at(path):
    division = divide(load(str(path)), load_strategy("fedfreeze"), 3, None)
    assert division.partition == "its own load_data()"
    assert division.held.sum(1).tolist() == [80, 80, 80]
    assert (division.validation, division.test) == (30, 30)
    assert np.all(division.held > 0)
