"""A few examples go through everything that a task's author wrote, before a run begins.

What would fail on every board, or after the first round was trained, fails here in a second: data
that is not what ``inputs`` says, labels that the model has no output for, a loss that is no loss.
The examples are of the training half.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedfreeze.errors import ConfigError, FedFreezeError
from tasks.dataset import Examples
from tasks.task import Task

# So few that a large model on a small server needs seconds; where there are classes, the first and
# the last of them are among them.
_MOST = 16


def rehearse(task: Task, data_dir: str | None) -> None:
    """Put a few training examples through the task.

    torch's random state is left as it was.

    Args:
        task: as the strategy chose it.
        data_dir: where its data is.

    Raises:
        ConfigError: a part of the task does not suit its data; says which part, and on what.
    """
    data = task.dataset(data_dir)
    few = _few(data.train)
    with torch.random.fork_rng(devices=[]):
        declared = task.inputs.example(1)
    if few.inputs.shape[1:] != declared.shape[1:]:
        raise ConfigError(
            f'task "{task.name}": its data does not look as its inputs say: expected examples '
            f"{list(declared.shape[1:])}, read() gave {list(few.inputs.shape[1:])}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        _go_through(task, few)


def _few(examples: Examples) -> Examples:
    """One example of each class as far as they go, and then the first ones."""
    targets = np.asarray(examples.targets)
    chosen = list(range(min(_MOST, len(targets))))
    if targets.ndim == 1 and np.issubdtype(targets.dtype, np.integer):
        _, firsts = np.unique(targets, return_index=True)
        chosen = [int(firsts[0]), int(firsts[-1]), *map(int, firsts[1:-1]), *chosen]
    return examples.at(np.array(list(dict.fromkeys(chosen))[:_MOST], np.int64))


def _go_through(task: Task, few: Examples) -> None:
    name, inputs, targets = task.name, few.inputs, few.targets
    changed = _tried(
        f'task "{name}": its augmentation fails on {_shown(inputs)}',
        lambda: task.augmented(inputs, np.random.default_rng(0)),
    )
    if not isinstance(changed, Tensor) or _shown(changed) != _shown(inputs):
        raise ConfigError(
            f'task "{name}": its augmentation must give what it takes, it made '
            f"{_shown(changed)} of {_shown(inputs)}"
        )
    model = task.build().eval()
    outputs = _tried(
        f'task "{name}": its model fails on examples of its data, {_shown(inputs)}',
        lambda: model(task.prepare(inputs.clone())),
    )
    kinds = f"outputs {_shown(outputs)} and targets {_shown(targets)}"
    loss = _tried(
        f'task "{name}": its loss fails on {kinds}{_range(targets)}',
        lambda: task.loss(outputs.clone(), targets.clone()),
    )
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        raise ConfigError(
            f'task "{name}": its loss must be a tensor of one number, the mean over the examples; '
            f"of {kinds} it made {_shown(loss)}"
        )
    if not loss.requires_grad:
        raise ConfigError(
            f'task "{name}": its loss gives no gradient; compute it from the outputs with '
            "operations of torch, without detach() or item()"
        )
    if not bool(torch.isfinite(loss)):
        raise ConfigError(
            f'task "{name}": its loss is {loss.item()} before any training; look for NaN in its '
            "data, or for a logarithm or division in the loss"
        )
    _tried(f'task "{name}": its loss gives no gradient on {kinds}', loss.backward)
    for metric in task.metrics:
        measured = _tried(
            f'task "{name}": its metric "{metric.name}" fails on {kinds}',
            partial(metric.measure, outputs.detach().clone(), targets.clone()),
        )
        if not isinstance(measured, float | int):
            raise ConfigError(
                f'task "{name}": its metric "{metric.name}" must give a number, it gave '
                f"{_shown(measured)}; use float(...)"
            )


def _tried(what: str, step: Callable[[], Any]) -> Any:
    try:
        return step()
    except FedFreezeError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise ConfigError(f"{what}: {type(error).__name__}: {error}") from error


def _shown(value: Any) -> str:
    """As ``float32[8, 3]``; of what is no tensor, its type."""
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


def _range(targets: Tensor) -> str:
    if targets.is_floating_point() or targets.is_complex() or not targets.numel():
        return ""
    return f" from {int(targets.min())} to {int(targets.max())}"
