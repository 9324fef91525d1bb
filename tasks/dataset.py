"""Examples, and a data set of them with its two fixed halves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fedfreeze.errors import ConfigError

Groups = NDArray[np.int64]


@dataclass(frozen=True)
class Examples:
    """Raw inputs ``[n, ...]`` and targets ``[n, ...]``; a task's preprocessing readies batches."""

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

    def at(self, positions: NDArray[np.int64]) -> Examples:
        """The examples at these positions, in this order."""
        return Examples(self.inputs[positions], self.targets[positions])


@dataclass(frozen=True)
class Dataset:
    """A data set as it was published: what may be trained on, and what only measures the result.

    Attributes:
        train: clients' examples and the server's validation examples are drawn from these.
        test: nothing that decides anything may read these.
        source: where the data came from, for the record of a run.
        group: what a natural client is ("writer", "speaker"); empty if examples have no owner.
        train_groups, test_groups: number of the owner of each example; the same number is the same
            owner in both.
    """

    train: Examples
    test: Examples
    source: str
    group: str = ""
    train_groups: Groups | None = None
    test_groups: Groups | None = None

    def __post_init__(self) -> None:
        for half, examples, groups in (
            ("training", self.train, self.train_groups),
            ("test", self.test, self.test_groups),
        ):
            if groups is not None and len(groups) != len(examples):
                raise ConfigError(
                    f"a data set must name a {self.group or 'group'} for each {half} example, got "
                    f"{len(groups)} for {len(examples)} examples"
                )
