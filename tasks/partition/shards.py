"""Clients that hold a few shards of the examples sorted by class (McMahan et al., 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import ConfigError
from tasks.partition.parts import Indices, Part


def shards(
    positions: Indices,
    labels: NDArray[Any],
    clients: int,
    *,
    per_client: int,
    rng: np.random.Generator,
) -> list[Part]:
    """Sorted by class, cut into ``clients · per_client`` equal shards, dealt at random.

    A client sees about ``per_client`` classes. Within a class the order is random, and shards
    differ by one example at most.

    Raises:
        ConfigError: there are fewer examples than shards.
    """
    count = clients * per_client
    if count > len(positions):
        raise ConfigError(
            f"data.shards-per-client: expected at most {len(positions) // clients}, because "
            f"{clients} clients share {len(positions)} examples, got {per_client}"
        )
    order = rng.permutation(len(positions))
    ordered = positions[order[np.argsort(labels[order], kind="stable")]]
    dealt = rng.permutation(count).reshape(clients, per_client)
    cuts = np.array_split(ordered, count)
    return [[position for shard in mine for position in cuts[shard]] for mine in dealt]
