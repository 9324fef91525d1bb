"""The numbers of a division by hand."""

import math

import numpy as np
import pytest

from tasks.skew import counts, skew


def test_counts_are_examples_by_client_and_class():
    labels = np.array([0, 2, 2, 0, 1])
    held = counts((labels[:2], labels[2:]), 4)
    assert held.tolist() == [[1, 0, 1, 0], [1, 1, 1, 0]]


def test_clients_with_the_same_mix_show_no_skew():
    found = skew(np.array([[10, 30], [20, 60]]))
    assert found.total_variation == 0.0
    assert (found.smallest, found.median, found.largest, found.size_ratio) == (40, 60.0, 80, 2.0)
    assert (found.majority_class, found.majority_share) == (1, 0.75)


def test_clients_of_one_class_each_are_as_far_from_the_whole_as_can_be():
    """Four even clients: each has 1 of its class where the whole has 1/4: distance 3/4."""
    found = skew(np.diag([5, 5, 5, 5]))
    assert found.total_variation == 0.75
    assert found.effective_classes == 1.0


def test_effective_classes_are_the_mean_of_exp_entropy():
    """Even over 4 classes: 4. Shares 1/2, 1/4, 1/4: exp(1.5 ln 2) = 2 ** 1.5."""
    found = skew(np.array([[3, 3, 3, 3], [4, 2, 2, 0]]))
    assert found.effective_classes == pytest.approx((4 + 2**1.5) / 2)
    assert math.isclose(found.total_variation, np.mean([0.1, 0.15]))


def test_without_classes_only_sizes_are_known():
    found = skew(np.array([[4], [1]]), has_classes=False)
    assert (found.size_ratio, found.total_variation, found.majority_share) == (4.0, None, None)
