"""Knapsacks with a shallowest item, against every set and against an independent bound."""

from itertools import combinations

import numpy as np
import pytest

from strategies.knapsack import pack


def random_knapsack(rng, items, resources, share):
    """Of each resource, about ``share`` of what all items take; less where the first is shallow."""
    values = rng.integers(1, 1_000, items).tolist()
    weights = rng.uniform(0.1, 1.0, (resources, items))
    ahead = rng.uniform(0, 0.3 / items, (resources, items))
    fixed = np.cumsum(ahead[:, ::-1], axis=1)[:, ::-1] * weights.sum(axis=1)[:, None]
    room = share * weights.sum(axis=1)[:, None] - fixed
    return values, weights, room


def best_of_every_set(values, weights, room, forced=()):
    best = -1
    for size in range(1, len(values) + 1):
        for items in combinations(range(len(values)), size):
            fits = (weights[:, items].sum(axis=1) <= room[:, items[0]]).all()
            if fits and set(forced) <= set(items):
                best = max(best, sum(values[item] for item in items))
    return best


@pytest.mark.parametrize("seed", range(60))
def test_the_best_set_is_found_among_all(seed):
    rng = np.random.default_rng(seed)
    resources, share = int(rng.integers(1, 5)), float(rng.uniform(0.2, 1.1))
    values, weights, room = random_knapsack(rng, int(rng.integers(1, 12)), resources, share)
    expected = best_of_every_set(values, weights, room)
    found = pack(values, weights, room)
    if found is None:
        assert expected == -1
        return
    assert found.value == found.bound == expected
    assert found.value == sum(values[item] for item in found.items)
    assert (weights[:, found.items].sum(axis=1) <= room[:, found.items[0]] * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_forced_is_in_the_best_set(seed):
    rng = np.random.default_rng(seed)
    values, weights, room = random_knapsack(rng, 9, 2, 0.6)
    forced = tuple(rng.choice(9, 2, replace=False).tolist())
    expected = best_of_every_set(values, weights, room, forced)
    found = pack(values, weights, room, forced)
    assert (-1 if found is None else found.value) == expected
    assert found is None or set(forced) <= set(found.items)


def test_where_no_item_fits_there_is_no_set():
    assert pack([3, 4], np.array([[2.0, 2.0]]), np.array([[1.0, 1.0]])) is None


def test_where_nothing_binds_everything_is_taken():
    found = pack([3, 0, 4], np.ones((1, 3)), np.full((1, 3), 3.0))
    assert (found.items, found.value, found.bound) == ((0, 1, 2), 7, 7)


def test_a_shallow_item_that_costs_the_others_their_room_is_left_alone():
    """With item 0 there is room for one, without it for two: 5 against 3 + 4."""
    weights, room = np.ones((1, 3)), np.array([[1.0, 2.0, 2.0]])
    assert pack([5, 3, 4], weights, room).items == (1, 2)
    assert pack([8, 3, 4], weights, room).items == (0,)


def lagrangian_bound(values, weights, room):
    """The least that the relaxation gives in a long descent, for every shallowest item."""
    values, highest = np.array(values, float), 0.0
    for first in range(len(values)):
        left = room[:, first] - weights[:, first]
        if (left < 0).any():
            continue
        above, takes = values[first + 1 :], weights[:, first + 1 :]
        multipliers, least = np.zeros(len(left)), np.inf
        for step in range(250):
            gains = above - multipliers @ takes
            bound = values[first] + gains[gains > 0].sum() + multipliers @ left
            least = min(least, bound)
            slope = left - takes[:, gains > 0].sum(axis=1)
            size = values.mean() / takes.mean() / (1 + step) if takes.size else 0.0
            norm = np.linalg.norm(slope) or 1.0
            multipliers = np.maximum(0.0, multipliers - size * slope / norm)
        highest = max(highest, least)
    return highest


@pytest.mark.parametrize("seed", range(12))
def test_sixty_items_come_within_a_hundredth_of_the_lagrangian_bound(seed):
    rng = np.random.default_rng(seed)
    resources, share = 1 + seed % 2, float(rng.uniform(0.3, 0.9))
    values, weights, room = random_knapsack(rng, 60, resources, share)
    found = pack(values, weights, room)
    bound = lagrangian_bound(values, weights, room)
    assert 0.99 * bound <= found.value <= bound + 1e-6
    assert (weights[:, found.items].sum(axis=1) <= room[:, found.items[0]] * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(4))
def test_with_three_resources_that_have_nothing_to_do_with_each_other_it_is_a_fiftieth(seed):
    """No set may come closer: the relaxation gives up more with each resource."""
    rng = np.random.default_rng(seed)
    values, weights, room = random_knapsack(rng, 60, 3, 0.6)
    found = pack(values, weights, room)
    assert found.value <= found.bound
    assert 0.98 * lagrangian_bound(values, weights, room) <= found.value


def test_a_search_that_was_cut_short_says_what_it_cannot_rule_out():
    rng = np.random.default_rng(5)
    values, weights, room = random_knapsack(rng, 60, 3, 0.5)
    whole = pack(values, weights, room)
    cut = pack(values, weights, room, most_sets=1)
    assert cut.value <= whole.value <= cut.bound
