import math

import numpy as np
import pytest

from compression.golomb import Subsets, code, divisors


def coded(sets):
    """Subsets from pairs of a list of positions and a universe."""
    return Subsets(
        np.array([p for positions, _ in sets for p in positions], np.int64),
        np.array([len(positions) for positions, _ in sets], np.int64),
        np.array([universe for _, universe in sets], np.int64),
    )


@pytest.mark.parametrize("density", [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5])
def test_the_divisor_is_within_one_and_a_quarter_per_cent_of_gallager_and_van_voorhis(density):
    universe = 100_000
    optimum = math.ceil(-math.log(2 - density) / math.log(1 - density))
    divisor = int(divisors(np.array([int(density * universe)]), np.array([universe]))[0])
    assert abs(divisor - optimum) <= max(1, optimum * 0.0125)


@pytest.mark.parametrize("density", [0.001, 0.01, 0.1, 0.5])
def test_random_subsets_cost_at_most_three_per_cent_over_the_entropy(density):
    universe = 200_000
    positions = np.flatnonzero(np.random.default_rng(0).random(universe) < density)
    k = len(positions)
    floor = (math.lgamma(universe + 1) - math.lgamma(k + 1) - math.lgamma(universe - k + 1)) / (
        math.log(2)
    )
    subsets = Subsets(positions, np.array([k]), np.array([universe]))
    assert floor < code(subsets).bit_count <= 1.03 * floor


def test_the_stated_bit_count_is_what_the_bits_take():
    subsets = coded([([3, 17, 80], 100), ([1], 900)])
    assert sum(map(len, code(subsets).bits())) == code(subsets).bit_count


def test_the_bits_of_each_subset_add_up_to_those_of_all():
    sets = [([3, 17, 80], 100), ([], 7), ([1], 900), (list(range(40)), 41), ([0, 1], 2)]
    alone = [code(coded([one])).bit_count for one in sets]
    assert code(coded(sets)).subset_bits.tolist() == alone
    assert code(coded(sets)).bit_count == sum(alone)
