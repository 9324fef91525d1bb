"""What people write for the parts of a task, as the rest of the project can rely on it.

A task is written by hand, mostly once, and by people who know their model rather than this project:
a wrong part is named when the file is read, not by whatever trips over it in the first round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from torch import Tensor, nn

from fedfreeze.errors import ConfigError
from tasks.dataset import Dataset
from tasks.metric import Metric

_FUNCTIONS = {
    "read": "a function from a Place to a Dataset",
    "loss": "a function of outputs and targets",
    "preprocessing": "something that can be called with a batch of raw inputs",
}


def settled(task: Any) -> dict[str, Any]:
    """The parts that were written in another form than they are kept in: lists, tables.

    Args:
        task: with the attributes of :class:`tasks.task.Task`.

    Raises:
        ConfigError: a part is of the wrong kind; names it and says what it should be.
    """
    kept: dict[str, Any] = {}
    for part in ("metrics", "labels"):
        if isinstance(value := getattr(task, part), list):
            kept[part] = tuple(value)
    layers = task.layers
    if isinstance(layers, Mapping):
        layers = tuple(layers.items())
    if isinstance(layers, tuple | list):
        kept["layers"] = _layers(task.name, layers)
    values = {field.name: getattr(task, field.name) for field in fields(task)} | kept
    _check(values)
    return kept


def check_dataset(name: str, data: Any) -> Dataset:
    """What ``read`` gave, if it is a data set of tensors.

    Args:
        name: of the task.
        data: whatever came back.

    Raises:
        ConfigError: it is something else.
    """
    if not isinstance(data, Dataset):
        raise ConfigError(
            f'task "{name}": expected read() to return a Dataset, got a {type(data).__name__}'
        )
    for part, value in (
        ("train.inputs", data.train.inputs),
        ("train.targets", data.train.targets),
        ("test.inputs", data.test.inputs),
        ("test.targets", data.test.targets),
    ):
        if not isinstance(value, Tensor) or value.requires_grad or value.device.type != "cpu":
            came: Any = type(value).__name__
            if isinstance(value, Tensor):
                came = "one with requires_grad" if value.requires_grad else f"one on {value.device}"
            raise ConfigError(
                f'task "{name}": read() must give {part} as a tensor on the CPU without gradient, '
                f"got {came}; torch.from_numpy() and detach() make one"
            )
    for part, groups in (("train_groups", data.train_groups), ("test_groups", data.test_groups)):
        if groups is not None and not (
            isinstance(groups, np.ndarray)
            and np.issubdtype(groups.dtype, np.integer)
            and groups.ndim == 1
        ):
            raise ConfigError(
                f'task "{name}": read() must give {part} as an array of whole numbers, one for '
                f"each example, got a {type(groups).__name__}; np.array(..., np.int64) makes one"
            )
    return data


def _check(values: Mapping[str, Any]) -> None:
    name = values["name"]
    if not isinstance(name, str) or not name:
        raise ConfigError(f'a task needs a name such as "heat-pump", got {name!r:.80}')
    if not callable(getattr(values["inputs"], "example", None)):
        raise _wrong(name, "inputs", "Images(...), Tokens(...) or Values(...)", values["inputs"])
    for part, wanted in _FUNCTIONS.items():
        if not callable(values[part]):
            raise _wrong(name, part, wanted, values[part])
    if values["augmentation"] is not None and not callable(values["augmentation"]):
        raise _wrong(name, "augmentation", "a function of inputs and rng", values["augmentation"])
    _check_model(name, values["model"])
    labels, outputs, layers = values["labels"], values["outputs"], values["layers"]
    if not isinstance(labels, tuple) or not all(isinstance(label, str) for label in labels):
        raise _wrong(name, "labels", "the names of the classes, as texts in a tuple", labels)
    if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 0:
        raise _wrong(name, "outputs", "a whole number of 0 or more", outputs)
    if not isinstance(layers, str | tuple):
        raise _wrong(name, "layers", '"auto", a grouping of the model or globs by layer', layers)
    _check_metrics(name, values["metrics"])
    for part, value in values.items():
        try:
            hash(value)
        except TypeError as error:
            raise ConfigError(
                f'task "{name}": {part} must be a value that never changes, a '
                f"{type(value).__name__} can ({error}); make it a function or a frozen dataclass"
            ) from error


def _check_model(name: str, model: Any) -> None:
    if isinstance(model, nn.Module):
        kind = type(model).__name__
        raise ConfigError(
            f'task "{name}": model must be a function that builds a fresh model each time, got a '
            f"{kind} that is built already; write model=lambda: {kind}(...)"
        )
    if not isinstance(model, str) and not callable(model):
        raise _wrong(name, "model", "a function that builds it, or the name of a model", model)


def _check_metrics(name: str, metrics: Any) -> None:
    if not (
        isinstance(metrics, tuple)
        and metrics
        and all(isinstance(m, Metric) and callable(m.measure) for m in metrics)
    ):
        raise _wrong(
            name,
            "metrics",
            "one Metric(name, function) or more in a tuple, as (ACCURACY,)",
            metrics,
        )
    names = [metric.name for metric in metrics]
    for metric in names:
        if not isinstance(metric, str) or not metric.isidentifier() or metric == "loss":
            raise ConfigError(
                f'task "{name}": a metric needs a name in snake case, such as "mean_error", and '
                f'"loss" is taken, got {metric!r:.80}'
            )
        if names.count(metric) > 1:
            raise ConfigError(f'task "{name}": two metrics are named "{metric}"; rename one')


def _layers(name: str, pairs: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    def is_pair(pair: Any) -> bool:
        if not (isinstance(pair, tuple | list) and len(pair) == len(("layer", "globs"))):
            return False
        layer, globs = pair
        listed = isinstance(globs, tuple | list) and len(globs) > 0
        return bool(isinstance(layer, str) and layer and listed) and all(
            isinstance(glob, str) for glob in globs
        )

    layers = [pair[0] for pair in pairs if is_pair(pair)]
    if not pairs or len(layers) < len(pairs) or len(set(layers)) < len(layers):
        raise _wrong(
            name, "layers", 'names with globs each, as (("body", ("0.*", "2.*")), ...)', pairs
        )
    return tuple((layer, tuple(globs)) for layer, globs in pairs)


def _wrong(name: str, part: str, wanted: str, came: Any) -> ConfigError:
    return ConfigError(f'task "{name}": {part} must be {wanted}, got {came!r:.120}')
