"""What a task is, and how one is found by its name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray
from torch import Tensor, nn

from fedfreeze.errors import ConfigError
from fedfreeze.layout import Arrays, Layout
from tasks.registry import module_of


@dataclass(frozen=True)
class Examples:
    """Inputs ``[n, ...]`` and targets ``[n, ...]``, ready for the model and the loss."""

    inputs: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.targets):
            raise ConfigError(
                f"a task must give a target for each input, got {len(self.inputs)} inputs "
                f"and {len(self.targets)} targets"
            )

    def __len__(self) -> int:
        return len(self.targets)


@runtime_checkable
class Task(Protocol):
    """A model, its data, its loss and its metric.

    ``client_examples`` and ``validation`` take the same split; what they return is disjoint, and
    neither touches the test set.
    """

    name: str
    metric: str

    def build(self) -> nn.Module:
        """The model, freshly initialised from torch's current random state; callers seed."""
        ...

    def layout(self) -> Layout:
        """The model's layers with their traced costs."""
        ...

    def client_examples(
        self,
        client: int,
        clients: int,
        *,
        partition: str,
        alpha: float,
        validation_share: float,
        seed: int,
        data_dir: str | None,
    ) -> Examples:
        """What client ``client`` of 0 ... ``clients`` - 1 trains on."""
        ...

    def validation(
        self,
        *,
        partition: str,
        alpha: float,
        validation_share: float,
        seed: int,
        data_dir: str | None,
    ) -> Examples:
        """The server's own share of the training set, which no client holds."""
        ...

    def test(self, data_dir: str | None) -> Examples:
        """The test set: reported, never used for a decision."""
        ...

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean loss over the examples, a scalar."""
        ...

    def score(self, outputs: Tensor, targets: Tensor) -> float:
        """The metric summed over the examples; for accuracy the number that are right."""
        ...

    def data_source(self, data_dir: str | None) -> str:
        """Where the data comes from, for the record of a run."""
        ...


def load(name: str) -> Task:
    """The task of that name; a dotted name is a module whose ``task`` attribute is one.

    Raises:
        ConfigError: no such task, the module cannot be imported, or it holds no task.

    >>> load("fashion-cnn").metric
    'accuracy'
    """
    try:
        module_name = module_of(name)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(
            f'task "{name}": module {module_name} cannot be imported: {error}; '
            "it must be installed where the server and the boards run"
        ) from error
    if not hasattr(module, "task"):
        raise ConfigError(f'task "{name}": module {module_name} needs an attribute "task"')
    task = module.task
    if not isinstance(task, Task):
        members = {*Task.__annotations__, *(key for key in vars(Task) if key[0] != "_")}
        missing = sorted(member for member in members if not hasattr(task, member))
        raise ConfigError(f'task "{name}": {module_name}.task lacks {", ".join(missing)}')
    return task


def initial_arrays(task: Task, seed: int) -> dict[str, NDArray[Any]]:
    """The seeded initial state of the task's model: every tensor of its layout, by name.

    The random state of the caller's torch is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        state = task.build().state_dict()
    return {name: np.array(state[name].cpu().numpy()) for name in task.layout().tensors}


def load_arrays(model: nn.Module, arrays: Arrays) -> None:
    """Copy the published tensors into the model."""
    state = model.state_dict()
    with torch.no_grad():
        for name, array in arrays.items():
            state[name].copy_(torch.from_numpy(np.array(array)))


def initial_record(task: Task, seed: int) -> ArrayRecord:
    """:func:`initial_arrays` as Flower's ``start(initial_arrays=...)`` takes it."""
    return ArrayRecord({name: Array(array) for name, array in initial_arrays(task, seed).items()})
