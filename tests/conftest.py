"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from flwr.supercore.task_identity import TaskIdentity
from hypothesis import HealthCheck, settings

from client_app.app import app as client_app
from fedfreeze.run_folder import RunFolder
from server_app.round import Run
from server_app.run_config import read
from tests.grid import InProcessGrid

# Nothing in the tests may depend on how fast the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

SMALL = ("rounds=3", "local.epochs=1", "local.batch-size=32")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _a_task_of_flower() -> None:
    """Flower's messages are stamped with the task that they are made in."""
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1


@pytest.fixture
def small_run(tmp_path: Path) -> Callable[..., Run]:
    """Makes a small run of a preset on an in-process grid; see the arguments."""

    def make(
        *overrides: str,
        preset: str = "fedfreeze",
        nodes: int = 3,
        name: str = "run",
        resume: bool = False,
        grid: dict[str, Any] | None = None,
        **run_config: Any,
    ) -> Run:
        request = read(
            {
                "strategy": preset,
                "set": json.dumps([*SMALL, *overrides]),
                "out-dir": str(tmp_path / name),
                "resume": resume,
                "start-timeout-s": 1.0,
                **run_config,
            }
        )
        return Run(request, InProcessGrid(client_app, nodes, **(grid or {})))

    return make


def records(folder: RunFolder, file: str = "rounds") -> list[dict[str, Any]]:
    """What a run wrote down."""
    text = getattr(folder, file).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
