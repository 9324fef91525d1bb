"""Examples, and a data set of them with its two fixed halves."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fedfreeze.errors import ConfigError

Groups = NDArray[np.int64]

# Kinds of arrays whose values are names: texts, and objects as tables of data have them.
_NAMES = "UO"


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
        train_groups, test_groups: owner of each example, by number or by name; names are turned
            into numbers. The same one is the same owner in both.
    """

    train: Examples
    test: Examples
    source: str
    group: str = ""
    train_groups: Groups | None = None
    test_groups: Groups | None = None

    def __post_init__(self) -> None:
        if not (len(self.train) and len(self.test)):
            raise ConfigError(
                f"{self.source or 'a data set'}: expected examples in both halves, got "
                f"{len(self.train)} for training and {len(self.test)} for the test"
            )
        self._number_owners()
        for half, examples, groups in (
            ("training", self.train, self.train_groups),
            ("test", self.test, self.test_groups),
        ):
            if groups is not None and len(groups) != len(examples):
                raise ConfigError(
                    f"a data set must name a {self.group or 'group'} for each {half} example, got "
                    f"{len(groups)} for {len(examples)} examples"
                )

    @property
    def fingerprint(self) -> str:
        """16 hex digits over the shapes and all targets: enough to tell data sets apart."""
        digest = hashlib.sha256()
        for half in (self.train, self.test):
            digest.update(f"{tuple(half.inputs.shape)}{half.targets.dtype}".encode())
            digest.update(np.ascontiguousarray(half.targets.numpy()).tobytes())
        return digest.hexdigest()[:16]

    def with_tests(self, count: int) -> Dataset:
        """The same with ``count`` of the test examples, or all if there are no more.

        Which ones does not depend on a run's seed, so that all runs are measured on the same.
        """
        if count >= len(self.test):
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(len(self.test))[:count])
        groups = None if self.test_groups is None else self.test_groups[chosen]
        return replace(
            self,
            test=self.test.at(chosen),
            test_groups=groups,
            source=f"{self.source}; {count} of its {len(self.test)} test examples",
        )

    def _number_owners(self) -> None:
        halves = {"train_groups": self.train_groups, "test_groups": self.test_groups}
        given = {half: np.asarray(groups) for half, groups in halves.items() if groups is not None}
        if any(groups.dtype.kind in _NAMES for groups in given.values()):
            texts = {half: groups.astype(str) for half, groups in given.items()}
            names = np.unique(np.concatenate([*texts.values()]))
            for half, groups in texts.items():
                object.__setattr__(self, half, np.searchsorted(names, groups).astype(np.int64))
