"""A task file of the user's own reaches the server and every client of a real run."""

import re

import numpy as np
import pytest

from tests.process.harness import ROOT

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process")]

PAGE = (ROOT / "docs" / "your-task.md").read_text("utf-8")
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
STRATEGY, *_ = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_page_s_two_files_and_its_command_train(command):
    folder = command.home.parent
    (folder / "heat_pump.py").write_text(EXAMPLE)
    (folder / "heat_pump.toml").write_text(STRATEGY)
    (folder / "readings").mkdir()
    rng = np.random.default_rng(0)
    readings = rng.normal(size=(60, 8))
    rows = np.column_stack([np.arange(60) % 2, readings, readings.sum(1)])
    np.savetxt(folder / "readings" / "heat_pumps.csv", rows, delimiter=",")

    code, result, err = command.json(
        *("run", "--strategy", "heat_pump.toml", "--data-dir", "readings"),
        *("--rounds", "2", "--clients", "2", "--workers", "1", "--fleet", "high"),
    )
    assert code == 0, err
    assert result["rounds"] == 2
    assert "final_r2" in result
