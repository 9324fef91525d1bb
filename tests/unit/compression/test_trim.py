import numpy as np
import pytest

from compression.trim import _Order


@pytest.mark.parametrize("share_kept_anyway", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("ranks", [2, 9, 10**6])
def test_whatever_is_asked_for_the_first_are_those_of_a_full_sort(ranks, share_kept_anyway):
    """In any order of asking, with ties by index and what must be kept at the front."""
    rng = np.random.default_rng(ranks)
    rank = rng.integers(0, ranks, 300) / 7
    must_keep = rng.random(300) < share_kept_anyway
    by_hand = sorted(range(300), key=lambda place: (not must_keep[place], -rank[place], place))
    order = _Order(rank, must_keep)
    for count in (299, 290, 295, 100, 1, 300, 150):
        assert order.first(count).tolist() == sorted(by_hand[:count])
