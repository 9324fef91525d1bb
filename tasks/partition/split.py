"""How a training set is divided: everything follows from targets, owners and a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import ConfigError
from fedfreeze.toml_faults import did_you_mean
from tasks.partition.natural import natural
from tasks.partition.parts import Indices, Part, by_class
from tasks.partition.shards import shards
from tasks.partition.skew import label_and_quantity_skew, label_skew, quantity_skew
from tasks.registry import OWNERS

Partition = Literal["dirichlet", "quantity", "dirichlet-quantity", "shards", "natural", "iid"]

# These look at the class of each example.
BY_CLASS = ("dirichlet", "dirichlet-quantity", "shards")

# Streams of one seed that must not share numbers.
_VALIDATION, _CLIENTS = 0, 1


def has_classes(targets: NDArray[Any]) -> bool:
    """Whether each target is one class: a whole number or a truth value.

    >>> has_classes(np.array([3, 1])), has_classes(np.array([0.5])), has_classes(np.array([[3, 1]]))
    (True, False, False)
    """
    return targets.ndim == 1 and targets.dtype.kind in "biu"


@dataclass(frozen=True)
class Split:
    """How a training set is divided; equal splits give every strategy the same examples.

    Attributes:
        partition: "iid" (equal shares of the shuffled set), "dirichlet" (label skew), "quantity"
            (sizes differ), "dirichlet-quantity" (both), "shards" (a few classes each) or "natural"
            (by owner).
        alpha: concentration of the draw over classes: small is skewed, large is even.
        validation_share: of the training set, kept from the clients for the server.
        seed: 0 or more.
        quantity_alpha: concentration of the draw over sizes.
        shards_per_client: how many shards a client holds.

    Raises:
        ConfigError: a value is out of range.
    """

    partition: str
    alpha: float
    validation_share: float
    seed: int
    quantity_alpha: float = 1.0
    shards_per_client: int = 2

    def __post_init__(self) -> None:
        kinds = get_args(Partition)
        if self.partition not in kinds:
            near = did_you_mean(self.partition, kinds)
            raise ConfigError(
                f'unknown partition "{self.partition}"; the partitions are {", ".join(kinds)}{near}'
            )
        for name, alpha in (("alpha", self.alpha), ("quantity alpha", self.quantity_alpha)):
            if not 0 < alpha < float("inf"):
                raise ConfigError(f"a partition's {name} must be finite and above 0, got {alpha}")
        if not 0 <= self.validation_share < 1:
            raise ConfigError(
                f"a validation share must be 0 or more and below 1, got {self.validation_share}"
            )
        if self.seed < 0:
            raise ConfigError(f"a seed must be 0 or more, got {self.seed}")
        if self.shards_per_client < 1:
            raise ConfigError(f"a client must hold 1 or more shards, got {self.shards_per_client}")

    def validation(self, labels: NDArray[Any]) -> Indices:
        """Sorted positions of the server's examples: the share of every class, rounded.

        The same under every partition, so that validation figures can be compared between them.
        That holds for owners too: drawn at random, the server's examples come from every owner in
        proportion. To keep whole owners back would measure how well the model does for strangers,
        but cost one client in ten where there are ten people; where the test half has owners of
        its own, their spread says that.

        Targets that are no classes give a plain share of the shuffled set.
        """
        rng = np.random.default_rng([self.seed, _VALIDATION])
        chosen = [
            rng.permutation(members)[: round(self.validation_share * len(members))]
            for members in (by_class(labels) if has_classes(labels) else [np.arange(len(labels))])
        ]
        return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, np.int64)

    def pooled(self, labels: NDArray[Any]) -> Indices:
        """Sorted positions of what all clients hold together: all but the server's examples."""
        return np.setdiff1d(np.arange(len(labels)), self.validation(labels))

    def clients(
        self, labels: NDArray[Any], clients: int, groups: Indices | None = None
    ) -> tuple[Indices, ...]:
        """Sorted positions of each client's examples: disjoint, none empty, together all the rest.

        Args:
            labels: target of each training example.
            clients: how many to divide among.
            groups: number of the owner of each training example, if they have owners.

        Raises:
            ConfigError: fewer examples, shards or owners than clients, no client, or a partition
                that needs classes or owners where there are none.
        """
        rest = self.pooled(labels)
        if not len(rest):
            raise ConfigError(
                f"expected training examples for the clients, got none: the server's validation "
                f"share is {self.validation_share} of {len(labels)}; lower data.validation-share"
            )
        if not 1 <= clients <= len(rest):
            raise ConfigError(
                f"expected 1 to {len(rest)} clients, one for each training example at most, "
                f"got {clients}"
            )
        if self.partition in BY_CLASS and not has_classes(labels):
            raise ConfigError(
                f'data.partition: "{self.partition}" divides by class, and the targets of this '
                "task are no classes; use iid, quantity or natural"
            )
        parts = self._divided(rest, labels[rest], clients, None if groups is None else groups[rest])
        return tuple(np.sort(np.asarray(part, np.int64)) for part in parts)

    def _divided(
        self, rest: Indices, labels: NDArray[Any], clients: int, owners: Indices | None
    ) -> list[Part]:
        rng = np.random.default_rng([self.seed, _CLIENTS])
        if self.partition == "dirichlet":
            return label_skew(rest, labels, clients, alpha=self.alpha, rng=rng)
        if self.partition == "quantity":
            return quantity_skew(rest, clients, alpha=self.quantity_alpha, rng=rng)
        if self.partition == "dirichlet-quantity":
            return label_and_quantity_skew(
                rest,
                labels,
                clients,
                alpha=self.alpha,
                quantity_alpha=self.quantity_alpha,
                rng=rng,
            )
        if self.partition == "shards":
            return shards(rest, labels, clients, per_client=self.shards_per_client, rng=rng)
        if self.partition == "natural":
            if owners is None:
                known = ", ".join(f"{task} ({owner})" for task, owner in OWNERS.items())
                raise ConfigError(
                    'data.partition: "natural" gives each client the examples of an owner, and '
                    f"those of this task have none; tasks whose examples have owners: {known}"
                )
            return natural(rest, owners, clients)
        return [list(part) for part in np.array_split(rng.permutation(rest), clients)]
