"""The task that docs/your-task.md shows: a regression on data of its own, divided by owner."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fedfreeze.errors import ConfigError
from tests.conftest import records

PAGE = (Path(__file__).parent.parent.parent / "docs" / "your-task.md").read_text("utf-8")
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
STRATEGY, *_ = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)

PUMPS = 4


@pytest.fixture
def example(tmp_path):
    """The page's file and strategy, and readings whose power is linear in the sensors."""
    (tmp_path / "heat_pump.py").write_text(EXAMPLE)
    rng = np.random.default_rng(0)
    readings = rng.normal(size=(200, 8))
    power = readings @ np.linspace(-1, 1, 8) + 3
    pump = np.arange(200) % PUMPS
    np.savetxt(tmp_path / "heat_pumps.csv", np.column_stack([pump, readings, power]), delimiter=",")
    return tmp_path


def test_the_example_is_short():
    assert len(EXAMPLE.splitlines()) < 60


def test_the_example_trains_and_each_heat_pump_is_a_client(example, small_run):
    run = small_run(
        f"task='{example / 'heat_pump.py'}'",
        "local.learning-rate=0.05",
        "local.epochs=5",
        "fleet=high",
        "rounds=6",
        "compression.compression-ratio=2",
        preset="fedavg",
        nodes=PUMPS,
        **{"strategy-toml": STRATEGY, "data-dir": str(example)},
    )
    run.play()
    first, *_, last = records(run.folder)
    assert last["test_r2"] > 0.9
    assert last["test_mean_absolute_error"] < first["test_mean_absolute_error"]
    assert 0 < last["client_r2_worst_tenth"] <= last["client_r2_mean"]
    counts = [run.strategy.clients[device].examples for device in run.strategy.clients.ids()]
    assert sum(counts) == 160 - 16  # a tenth of the training rows validates on the server
    assert all(0 < count <= 40 for count in counts)
    assert str(example / "heat_pumps.csv") in run.folder.config.read_text()


def test_without_its_data_the_example_says_what_to_give(example, small_run):
    with pytest.raises(ConfigError) as caught:
        small_run(f"task='{example / 'heat_pump.py'}'", "data.partition=natural")
    assert str(caught.value) == (
        "expected heat pump readings as heat_pumps.csv below a data folder, found none; name the "
        "folder with --data-dir, with data-dir in a board's node config, or with FEDFREEZE_DATA_DIR"
    )
