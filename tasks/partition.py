"""Which training examples the server validates on, and which each client holds.

Everything follows from labels and a seed, so that all strategies meet the same split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import ConfigError
from fedfreeze.toml_faults import did_you_mean

Partition = Literal["iid", "dirichlet"]
Indices = NDArray[np.int64]

# Streams of one seed that must not share numbers.
_VALIDATION, _CLIENTS = 0, 1


@dataclass(frozen=True)
class Split:
    """How a training set is divided.

    Attributes:
        partition: "iid" (equal shares of the shuffled set) or "dirichlet" (label skew).
        alpha: concentration of the Dirichlet draw: small is skewed, large is even.
        validation_share: of the training set, kept from the clients for the server.
        seed: 0 or more.

    Raises:
        ConfigError: a value is out of range.
    """

    partition: str
    alpha: float
    validation_share: float
    seed: int

    def __post_init__(self) -> None:
        kinds = get_args(Partition)
        if self.partition not in kinds:
            near = did_you_mean(self.partition, kinds)
            raise ConfigError(
                f'unknown partition "{self.partition}"; the partitions are {", ".join(kinds)}{near}'
            )
        if not 0 < self.alpha < float("inf"):
            raise ConfigError(f"a partition's alpha must be finite and above 0, got {self.alpha}")
        if not 0 <= self.validation_share < 1:
            raise ConfigError(
                f"a validation share must be 0 or more and below 1, got {self.validation_share}"
            )
        if self.seed < 0:
            raise ConfigError(f"a seed must be 0 or more, got {self.seed}")

    def validation(self, labels: NDArray[Any]) -> Indices:
        """Sorted positions of the server's examples: the share of every class, rounded."""
        rng = np.random.default_rng([self.seed, _VALIDATION])
        chosen = [
            rng.permutation(members)[: round(self.validation_share * len(members))]
            for members in _by_class(labels)
        ]
        return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, np.int64)

    def clients(self, labels: NDArray[Any], clients: int) -> tuple[Indices, ...]:
        """Sorted positions of each client's examples: disjoint, none empty, together all the rest.

        Raises:
            ConfigError: fewer examples than clients, or no client.
        """
        rest = np.setdiff1d(np.arange(len(labels)), self.validation(labels))
        if not 1 <= clients <= len(rest):
            raise ConfigError(
                f"expected 1 to {len(rest)} clients, one for each training example at most, "
                f"got {clients}"
            )
        rng = np.random.default_rng([self.seed, _CLIENTS])
        if self.partition == "iid":
            parts = [list(part) for part in np.array_split(rng.permutation(rest), clients)]
        else:
            parts = _label_skew(rest, labels[rest], clients, self.alpha, rng)
        return tuple(np.sort(np.asarray(part, np.int64)) for part in parts)


def _label_skew(
    positions: Indices,
    labels: NDArray[Any],
    clients: int,
    alpha: float,
    rng: np.random.Generator,
) -> list[list[np.int64]]:
    """Each class divided by shares drawn from Dir(alpha) over clients (Yurochkin et al., 2019)."""
    parts: list[list[np.int64]] = [[] for _ in range(clients)]
    for members in _by_class(labels):
        shares = rng.dirichlet(np.full(clients, alpha))
        if not np.isfinite(shares).all():  # all draws underflowed: the limit is one client alone
            shares = np.eye(clients)[rng.integers(clients)]
        cuts = np.rint(np.cumsum(shares)[:-1] * len(members)).astype(np.int64)
        shuffled = rng.permutation(positions[members])
        for part, piece in zip(parts, np.split(shuffled, cuts), strict=True):
            part.extend(piece)
    for part in parts:
        if not part:  # the largest client gives one; the first of equals, so that all runs agree
            part.append(max(parts, key=len).pop())
    return parts


def _by_class(labels: NDArray[Any]) -> list[Indices]:
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]
