"""Every split of every data set is a partition of it."""

import dataclasses

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tasks.partition import Split

labels = arrays.arrays(np.uint8, st.integers(1, 120), elements=st.integers(0, 4))
splits = st.builds(
    Split,
    partition=st.sampled_from(
        ["iid", "dirichlet", "quantity", "dirichlet-quantity", "shards", "natural"]
    ),
    alpha=st.floats(1e-4, 1e4),
    validation_share=st.floats(0.0, 0.6),
    seed=st.integers(0, 2**63),
    quantity_alpha=st.floats(1e-4, 1e4),
    shards_per_client=st.integers(1, 3),
)


def most_clients(split, labels, owners):
    """How many the split can serve."""
    rest = split.pooled(labels)
    if split.partition == "shards":
        return len(rest) // split.shards_per_client
    if split.partition == "natural":
        return len(np.unique(owners[rest]))
    return len(rest)


def owners_of(labels):
    """Owners that have nothing to do with the classes."""
    return (np.arange(len(labels)) * 7) % 5


@given(labels, splits, st.data())
def test_clients_and_validation_are_disjoint_and_complete_and_no_client_is_empty(
    labels, split, data
):
    owners = owners_of(labels)
    most = most_clients(split, labels, owners)
    assume(most >= 1)
    clients = data.draw(st.integers(1, min(most, 12)))
    parts = split.clients(labels, clients, owners)
    assert len(parts) == clients
    assert min(len(part) for part in parts) >= 1
    together = np.concatenate([split.validation(labels), *parts])
    assert np.sort(together).tolist() == list(range(len(labels)))
    if split.partition == "natural":
        held = [set(owners[part].tolist()) for part in parts]
        assert sum(map(len, held)) == len(set().union(*held))


@given(st.integers(1, 60), splits, st.integers(1, 5))
def test_numbers_as_targets_are_divided_like_classes_where_the_partition_looks_at_none(
    count, split, clients
):
    split = dataclasses.replace(split, partition="quantity")
    targets = np.linspace(0, 1, count)
    assume(clients <= len(split.pooled(targets)))
    together = np.concatenate([split.validation(targets), *split.clients(targets, clients)])
    assert np.sort(together).tolist() == list(range(count))
    assert abs(len(split.validation(targets)) - split.validation_share * count) <= 0.5


@given(labels, splits)
def test_the_validation_set_is_stratified(labels, split):
    kept = np.bincount(labels[split.validation(labels)], minlength=5)
    share = split.validation_share * np.bincount(labels, minlength=5)
    assert np.abs(kept - share).max() <= 0.5


@given(labels, splits)
def test_the_same_seed_gives_the_same_split(labels, split):
    again = dataclasses.replace(split)
    owners = owners_of(labels)
    clients = min(3, most_clients(split, labels, owners))
    if clients:
        first, second = (one.clients(labels, clients, owners) for one in (split, again))
        assert [part.tolist() for part in first] == [part.tolist() for part in second]
    assert split.validation(labels).tolist() == again.validation(labels).tolist()


@given(labels, splits)
def test_the_validation_set_does_not_depend_on_the_partition(labels, split):
    other = dataclasses.replace(split, partition="iid", alpha=1.0, quantity_alpha=1.0)
    assert split.validation(labels).tolist() == other.validation(labels).tolist()
