"""A ``task.py`` as Flower's quickstarts have it, taken as a task.

Of such a module, these are used: ``Net()`` builds the model, and ``load_data(partition_id,
num_partitions, batch_size)`` gives a training and a held-out loader whose batches are pairs or
dictionaries (``{"img": ..., "label": ...}``). ``load_centralized_dataset()``, if it is there, gives
the loader that results are measured on. Its ``train`` and ``test`` are not: FedFreeze trains.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedfreeze.errors import ConfigError
from tasks.dataset import Dataset, Examples
from tasks.partition import Split
from tasks.sources import Place
from tasks.task import Task

_TARGETS = ("label", "labels", "target", "targets", "y")

# Of the held-out examples, the server validates on every second one; the rest are the test half.
_VALIDATION_EVERY = 2

_BATCH_SIZE = 256


def is_flower_task(module: ModuleType) -> bool:
    """Whether the module has what a task needs."""
    return callable(getattr(module, "Net", None)) and callable(getattr(module, "load_data", None))


def flower_task(name: str, module: ModuleType) -> Task:
    """The module as a task."""
    own_data = OwnData(module)
    return FlowerTask(name, inputs=own_data, read=own_data.whole, model=module.Net, own=own_data)


@dataclass(frozen=True)
class OwnData:
    """The module's own data, already divided among its clients."""

    module: ModuleType

    def example(self, count: int) -> Tensor:
        """The first examples of the first of many clients, which is the least to read."""
        loader = _load(self.module.load_data, 0, 10)[0]
        return _collected(loader, at_most=count).inputs

    def client(self, client: int, clients: int) -> Examples:
        """What one client trains on."""
        return _collected(_load(self.module.load_data, client, clients)[0])

    def whole(self, place: Place) -> Dataset:
        """All training examples, and those that results are measured on."""
        del place  # the module knows by itself where its data is
        train, held_out = _load(self.module.load_data, 0, 1)
        central = getattr(self.module, "load_centralized_dataset", None)
        test = held_out if central is None else central()
        return Dataset(_collected(train), _collected(test), f"{self.module.__name__}.load_data")


@dataclass(frozen=True, kw_only=True)
class FlowerTask(Task):
    """A task whose module divides its data by itself: ``[data]`` of a strategy has no say."""

    own: OwnData

    @property
    def divided_by(self) -> str:
        """The module's function."""
        return "its own load_data()"

    def client_examples(
        self, client: int, clients: int, split: Split, data_dir: str | None
    ) -> Examples:
        """The client's own training loader, read once."""
        del split, data_dir
        return _client(self.own, client, clients)

    def division(
        self, clients: int, split: Split, data_dir: str | None
    ) -> tuple[NDArray[np.int64], ...]:
        """Not known by position.

        Raises:
            ConfigError: always.
        """
        del clients, split, data_dir
        raise ConfigError(
            f'task "{self.name}" divides its data by itself, in load_data(); [data] has no say'
        )

    def check_division(self, split: Split, data_dir: str | None) -> None:
        """Nothing to check: the module divides its data itself."""

    def client_targets(
        self, clients: int, split: Split, data_dir: str | None
    ) -> tuple[NDArray[Any], ...]:
        """Targets of each client's own training loader."""
        del split, data_dir
        return tuple(
            np.asarray(_client(self.own, client, clients).targets) for client in range(clients)
        )

    def validation_count(self, split: Split, data_dir: str | None) -> int:
        """As many as :meth:`validation` gives."""
        return len(self.validation(split, data_dir))

    def validation(self, split: Split, data_dir: str | None) -> Examples:
        """Every second held-out example."""
        del split
        held_out = self.dataset(data_dir).test
        return held_out.at(np.arange(0, len(held_out), _VALIDATION_EVERY))

    def test(self, data_dir: str | None) -> Examples:
        """The other held-out examples."""
        held_out = self.dataset(data_dir).test
        return held_out.at(np.arange(1, len(held_out), _VALIDATION_EVERY))


@lru_cache(maxsize=4)
def _client(own: OwnData, client: int, clients: int) -> Examples:
    return own.client(client, clients)


def _load(load_data: Callable[..., Any], client: int, clients: int) -> tuple[Any, Any]:
    wanted = inspect.signature(load_data).parameters
    given = (client, clients, _BATCH_SIZE)[: len(wanted)]
    train, held_out = load_data(*given)
    return train, held_out


def _collected(loader: Iterable[Any], at_most: int | None = None) -> Examples:
    inputs: list[Tensor] = []
    targets: list[Tensor] = []
    # Loaders shuffle by torch's random state: the same order in every process.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for batch in loader:
            of_inputs, of_targets = _pair(batch)
            inputs.append(of_inputs)
            targets.append(of_targets)
            if at_most is not None and sum(map(len, targets)) >= at_most:
                break
    if not targets:
        raise ConfigError("load_data() gave a loader without a batch; a client needs one example")
    return Examples(torch.cat(inputs)[:at_most], torch.cat(targets)[:at_most])


def _pair(batch: Any) -> tuple[Tensor, Tensor]:
    if isinstance(batch, Mapping):
        target = next((key for key in _TARGETS if key in batch), None)
        others = [key for key in batch if key != target and isinstance(batch[key], Tensor)]
        if target is not None and len(others) == 1:
            return batch[others[0]], torch.as_tensor(batch[target])
        came = f"a dictionary with the keys {', '.join(map(str, batch))}"
    else:
        if isinstance(batch, list | tuple) and len(batch) == 2:
            return batch[0], torch.as_tensor(batch[1])
        came = f"a {type(batch).__name__}"
    raise ConfigError(
        "load_data() must give batches of one tensor of inputs and one of targets, as a pair or as "
        f'{{"img": ..., "label": ...}}, got {came}'
    )
