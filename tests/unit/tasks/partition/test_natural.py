"""Owners as clients, by hand."""

import numpy as np
import pytest

from fedfreeze.errors import ConfigError
from tasks.partition.natural import natural


def owners_of(parts, owners, positions):
    at = {int(position): int(owner) for position, owner in zip(positions, owners, strict=True)}
    return [sorted({at[int(position)] for position in part}) for part in parts]


def test_as_many_clients_as_owners_are_the_owners_in_order():
    owners = np.array([7, 3, 7, 5, 3, 7])
    parts = natural(np.arange(10, 16), owners, 3)
    assert [sorted(part) for part in parts] == [[11, 14], [13], [10, 12, 15]]


def test_more_owners_than_clients_are_shared_out_whole_and_balanced():
    """Sizes 7 | 6, then 5 to the 6 (11), 4 to the 7 (11), and 3 to the first of equals."""
    owners = np.repeat([0, 1, 2, 3, 4], [7, 6, 5, 4, 3])
    parts = natural(np.arange(25), owners, 2)
    assert owners_of(parts, owners, np.arange(25)) == [[0, 3, 4], [1, 2]]


def test_the_order_of_the_examples_does_not_matter():
    owners = np.repeat([0, 1, 2, 3, 4, 5], [3, 3, 3, 9, 1, 2])
    turned = np.random.default_rng(0).permutation(len(owners))
    straight = owners_of(natural(np.arange(21), owners, 3), owners, np.arange(21))
    assert owners_of(natural(turned, owners[turned], 3), owners[turned], turned) == straight


def test_more_clients_than_owners_are_refused_with_their_number():
    with pytest.raises(ConfigError) as caught:
        natural(np.arange(4), np.array([1, 1, 8, 8]), 3)
    assert str(caught.value) == (
        'data.partition: "natural" expected at most 2 clients, one for each owner of training '
        "examples, got 3; simulate fewer, with --clients 2"
    )
