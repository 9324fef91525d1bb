"""McMahan's shards by hand."""

import numpy as np
import pytest

from fedfreeze.errors import ConfigError
from tasks.partition.shards import shards


def rng(seed=0):
    return np.random.default_rng(seed)


def test_two_shards_of_even_classes_give_each_client_two_classes_at_most():
    """As published: 10 classes, 100 clients, 200 shards, none across two classes."""
    labels = np.repeat(np.arange(10), 60)
    shuffled = rng(5).permutation(600)
    parts = shards(np.arange(600), labels[shuffled], 100, per_client=2, rng=rng())
    assert [len(part) for part in parts] == [6] * 100
    assert max(len(np.unique(labels[shuffled][part])) for part in parts) == 2


def test_every_shard_is_dealt_once():
    labels = np.repeat(np.arange(3), 4)
    parts = shards(np.arange(100, 112), labels, 3, per_client=2, rng=rng())
    assert sorted(np.concatenate(parts).tolist()) == list(range(100, 112))


def test_examples_of_a_class_are_mixed_before_they_are_cut():
    labels = np.zeros(20, np.int64)
    parts = shards(np.arange(20), labels, 2, per_client=1, rng=rng())
    assert sorted(parts[0]) not in (list(range(10)), list(range(10, 20)))


def test_shards_differ_by_one_example_at_most():
    parts = shards(np.arange(11), np.arange(11), 4, per_client=1, rng=rng())
    assert sorted(len(part) for part in parts) == [2, 3, 3, 3]


def test_more_shards_than_examples_are_refused():
    with pytest.raises(ConfigError) as caught:
        shards(np.arange(11), np.arange(11), 4, per_client=3, rng=rng())
    assert str(caught.value) == (
        "data.shards-per-client: expected at most 2, because 4 clients share 11 examples, got 3"
    )
