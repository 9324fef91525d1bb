"""Splits by hand; that every split is a partition is in the property tests."""

import subprocess
import sys

import numpy as np
import pytest

from fedfreeze.errors import ConfigError
from tasks.partition import Split

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
                'unknown partition "dirichle"; the partitions are iid, dirichlet; '
                'did you mean "dirichlet"?'
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
    ],
)
def test_a_split_out_of_range_is_refused(changes, message):
    with pytest.raises(ConfigError) as caught:
        split(**changes)
    assert str(caught.value) == message


def test_partitions_need_no_torch():
    code = "import tasks.partition, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
