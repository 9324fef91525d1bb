"""Splits by hand; that every split is a partition is in the property tests."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from fedfreeze.errors import ConfigError
from tasks.partition import Split
from tasks.registry import OWNERS

LABELS = np.repeat(np.arange(10), 30)


def split(**changes) -> Split:
    given = {"partition": "dirichlet", "alpha": 0.3, "validation_share": 0.1, "seed": 0}
    return Split(**{**given, **changes})


def test_validation_takes_its_share_of_every_class():
    assert np.bincount(LABELS[split().validation(LABELS)]).tolist() == [3] * 10


def test_a_validation_share_of_zero_keeps_nothing():
    chosen = split(validation_share=0.0).validation(LABELS)
    assert chosen.tolist() == []
    assert chosen.dtype == np.int64


def test_iid_clients_are_equal_in_number_and_mixed():
    parts = split(partition="iid").clients(LABELS, 10)
    assert [len(part) for part in parts] == [27] * 10
    # 27 of 270 at random: a client that lacks 5 classes has a chance below one in a billion.
    assert all(len(np.unique(LABELS[part])) > 5 for part in parts)


def skew(alpha: float) -> float:
    """Mean over clients of the share of their commonest class, for many seeds."""
    shares = [
        np.bincount(LABELS[part]).max() / len(part)
        for seed in range(20)
        for part in split(alpha=alpha, seed=seed).clients(LABELS, 5)
    ]
    return float(np.mean(shares))


def test_a_smaller_alpha_skews_more():
    assert skew(0.05) > skew(0.5) > skew(5.0) > skew(1000.0)
    # Even shares: each class is a tenth of each client, but for rounding.
    assert skew(1e6) == pytest.approx(0.1, abs=0.02)


def test_the_validation_set_is_the_same_for_every_partition():
    assert (
        split(partition="iid").validation(LABELS).tolist()
        == split(alpha=9.0).validation(LABELS).tolist()
    )


def test_another_seed_gives_another_split():
    first, second = split(seed=0), split(seed=1)
    assert first.validation(LABELS).tolist() != second.validation(LABELS).tolist()
    assert first.clients(LABELS, 4)[0].tolist() != second.clients(LABELS, 4)[0].tolist()


def test_a_draw_that_underflows_still_gives_every_client_an_example():
    parts = split(alpha=1e-300, validation_share=0.0).clients(LABELS, 20)
    assert min(len(part) for part in parts) == 1
    assert sum(len(part) for part in parts) == len(LABELS)


@pytest.mark.parametrize("partition", ["dirichlet", "quantity", "dirichlet-quantity"])
def test_an_alpha_whose_draw_overflows_divides_evenly(partition):
    parts = split(
        partition=partition, alpha=1e308, quantity_alpha=1e308, validation_share=0.0
    ).clients(np.zeros(100, np.int64), 10)
    assert [len(part) for part in parts] == [10] * 10


@pytest.mark.parametrize(
    ("labels", "share"), [(np.empty(0, np.int64), 0.1), (np.zeros(10, np.int64), 0.99)]
)
def test_clients_of_no_examples_are_refused(labels, share):
    with pytest.raises(ConfigError) as caught:
        split(validation_share=share).clients(labels, 1)
    assert str(caught.value) == (
        "expected training examples for the clients, got none: the server's validation share is "
        f"{share} of {len(labels)}; lower data.validation-share"
    )


def test_as_many_clients_as_examples_get_one_each():
    parts = split(validation_share=0.0).clients(LABELS[:7], 7)
    assert [len(part) for part in parts] == [1] * 7


@pytest.mark.parametrize("clients", [0, 271])
def test_too_many_or_no_clients_are_refused(clients):
    with pytest.raises(ConfigError) as caught:
        split().clients(LABELS, clients)
    assert str(caught.value) == (
        f"expected 1 to 270 clients, one for each training example at most, got {clients}"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"partition": "dirichle"},
            (
                'unknown partition "dirichle"; the partitions are dirichlet, quantity, '
                'dirichlet-quantity, shards, natural, iid; did you mean "dirichlet"?'
            ),
        ),
        ({"alpha": 0.0}, "a partition's alpha must be finite and above 0, got 0.0"),
        ({"alpha": float("nan")}, "a partition's alpha must be finite and above 0, got nan"),
        ({"alpha": float("inf")}, "a partition's alpha must be finite and above 0, got inf"),
        (
            {"validation_share": 1.0},
            "a validation share must be 0 or more and below 1, got 1.0",
        ),
        ({"seed": -1}, "a seed must be 0 or more, got -1"),
        (
            {"quantity_alpha": 0.0},
            "a partition's quantity alpha must be finite and above 0, got 0.0",
        ),
        ({"shards_per_client": 0}, "a client must hold 1 or more shards, got 0"),
    ],
)
def test_a_split_out_of_range_is_refused(changes, message):
    with pytest.raises(ConfigError) as caught:
        split(**changes)
    assert str(caught.value) == message


# What version 0.1 gave for these labels, of which runs were published: sizes, and a checksum.
PUBLISHED = {
    "iid": ([27] * 10, "6efae2ace80cb539"),
    "dirichlet": ([19, 52, 4, 25, 29, 64, 12, 24, 21, 20], "8e859885b560b1ae"),
}


@pytest.mark.parametrize("partition", PUBLISHED)
def test_a_seed_keeps_the_split_that_it_gave_in_earlier_versions(partition):
    parts = [part.tolist() for part in split(partition=partition).clients(LABELS, 10)]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    assert ([len(part) for part in parts], digest) == PUBLISHED[partition]


def test_sizes_that_differ_come_with_the_same_mix_of_classes():
    labels = np.repeat(np.arange(4), 1000)
    parts = split(partition="quantity", quantity_alpha=0.5).clients(labels, 5)
    sizes = [len(part) for part in parts]
    assert max(sizes) > 3 * min(sizes)
    for part in parts:
        if len(part) >= 300:  # a share of 1/4 has a standard error of 0.025 then
            assert np.bincount(labels[part]) / len(part) == pytest.approx([0.25] * 4, abs=0.1)


def sizes_ratio(**changes) -> float:
    """Largest over smallest client in the mean over seeds."""
    return float(
        np.mean(
            [
                max(sizes) / min(sizes)
                for seed in range(20)
                for sizes in [[len(p) for p in split(seed=seed, **changes).clients(LABELS, 5)]]
            ]
        )
    )


@pytest.mark.parametrize("partition", ["quantity", "dirichlet-quantity"])
def test_a_smaller_quantity_alpha_makes_sizes_differ_more(partition):
    ratios = [
        sizes_ratio(partition=partition, quantity_alpha=alpha, alpha=1000.0)
        for alpha in (0.2, 2.0, 200.0)
    ]
    assert ratios[0] > ratios[1] > ratios[2]
    # A Dirichlet share of 5 at alpha 200 has a relative standard deviation of sqrt(4/1001) = 6 %.
    assert ratios[2] < 1.5


def test_both_skews_at_once_are_as_uneven_in_classes_as_label_skew_alone():
    """Even sizes leave label skew as it is, uneven ones do not mix the classes."""
    alone = skew(0.1)
    for quantity_alpha in (0.5, 1e6):
        both = [
            np.bincount(LABELS[part]).max() / len(part)
            for seed in range(20)
            for part in split(
                partition="dirichlet-quantity",
                alpha=0.1,
                quantity_alpha=quantity_alpha,
                seed=seed,
            ).clients(LABELS, 5)
        ]
        assert float(np.mean(both)) > alone - 0.1


@pytest.mark.parametrize("targets", [np.linspace(0, 1, 30), np.ones((30, 2), np.int64)])
@pytest.mark.parametrize("partition", ["dirichlet", "dirichlet-quantity", "shards"])
def test_targets_that_are_no_classes_cannot_be_divided_by_class(targets, partition):
    with pytest.raises(ConfigError) as caught:
        split(partition=partition).clients(targets, 3)
    assert str(caught.value) == (
        f'data.partition: "{partition}" divides by class, and the targets of this task are no '
        "classes; use iid, quantity or natural"
    )


@pytest.mark.parametrize("partition", ["iid", "quantity", "natural"])
def test_targets_that_are_no_classes_can_be_divided_otherwise(partition):
    targets = np.linspace(0, 1, 30)
    parts = split(partition=partition).clients(targets, 3, np.arange(30) % 5)
    assert sum(map(len, parts)) == 27


def test_validation_without_classes_is_a_plain_share():
    chosen = split().validation(np.linspace(0, 1, 40))
    assert len(chosen) == 4
    assert len(np.unique(chosen)) == 4
    assert chosen.tolist() != split(seed=1).validation(np.linspace(0, 1, 40)).tolist()


def test_truth_values_are_classes():
    truths = np.repeat([True, False], 50)
    assert np.bincount(truths[split().validation(truths)]).tolist() == [5, 5]
    assert sum(map(len, split().clients(truths, 4))) == 90


def test_the_pooled_examples_are_all_but_the_servers():
    pooled = split().pooled(LABELS)
    assert sorted([*pooled.tolist(), *split().validation(LABELS).tolist()]) == list(range(300))


def test_natural_clients_without_owners_are_refused_with_the_tasks_that_have_them():
    with pytest.raises(ConfigError) as caught:
        split(partition="natural").clients(LABELS, 3)
    assert str(caught.value) == (
        'data.partition: "natural" gives each client the examples of an owner, and those of this '
        "task have none; tasks whose examples have owners: mnist-writers (writer), femnist "
        "(writer), sentiment (domain), spoken-digits (speaker), watch-activity (person)"
    )
    assert set(OWNERS.values()) == {"writer", "domain", "speaker", "person"}


def test_partitions_need_no_torch():
    code = "import tasks.partition, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
