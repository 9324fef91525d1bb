"""Clients that are the owners of the examples: writers, speakers, persons, domains."""

from __future__ import annotations

import heapq

import numpy as np

from fedfreeze.errors import ConfigError
from tasks.partition.parts import Indices, Part


def natural(positions: Indices, owners: Indices, clients: int) -> list[Part]:
    """Whole owners per client; of more owners than clients, several share one.

    The largest owner goes to the client that has the fewest examples so far, and so on: no client
    then has more than 4/3 of the largest one in the best possible division (Graham, 1969). Clients
    are numbered by their lowest owner, so that where there are as many clients as owners, client i
    is the i-th owner.

    Args:
        positions: of the examples to divide.
        owners: number of the owner of each.
        clients: at most as many as there are owners.

    Raises:
        ConfigError: there are fewer owners than clients.
    """
    numbers, sizes = np.unique(owners, return_counts=True)
    if clients > len(numbers):
        raise ConfigError(
            f'data.partition: "natural" expected at most {len(numbers)} clients, one for each '
            f"owner of training examples, got {clients}; simulate fewer, with --clients "
            f"{len(numbers)}"
        )
    lightest = [(0, 0, client) for client in range(clients)]  # examples, owners, client
    held: list[list[int]] = [[] for _ in range(clients)]
    for at in np.lexsort((numbers, -sizes)):
        examples, count, client = heapq.heappop(lightest)
        held[client].append(int(numbers[at]))
        heapq.heappush(lightest, (examples + int(sizes[at]), count + 1, client))
    return [list(positions[np.isin(owners, mine)]) for mine in sorted(held, key=min)]
