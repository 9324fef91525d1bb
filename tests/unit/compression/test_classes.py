import math

import numpy as np
import pytest

from compression.classes import COLUMNS, MAX_CLASS, ROWS, Classes, Grid, log2_ratio


def test_a_grid_counts_everything_behind_two_dimensions_as_depth():
    assert Grid.of((8, 4)) == Grid(8, 4, 1)
    assert Grid.of((8, 4, 3, 5)) == Grid(8, 4, 15)


def test_positions_are_split_as_numpy_splits_them():
    row, column, inner = Grid.of((6, 5, 2, 3)).split(np.arange(180))
    expected = np.unravel_index(np.arange(180), (6, 5, 6))
    for ours, theirs in zip((row, column, inner), expected, strict=True):
        assert ours.tolist() == theirs.tolist()


def test_classes_are_the_bit_lengths_of_the_counts():
    grid = Grid(4, 3, 100_000)
    classes = Classes.of(grid, np.array([0, 1, 5, 10**5]), np.array([2, 0, 7]), ROWS | COLUMNS)
    assert classes.rows.tolist() == [0, 1, 3, MAX_CLASS]
    assert classes.columns.tolist() == [2, 0, 3]


def test_rows_or_columns_without_classes_are_all_of_one():
    grid, rows, columns = Grid(3, 2, 1), np.array([0, 4, 1]), np.array([5, 0])
    assert Classes.of(grid, rows, columns, ROWS).columns.tolist() == [1, 1]
    assert Classes.of(grid, rows, columns, COLUMNS).rows.tolist() == [1, 1, 1]


def test_groups_hold_elements_whose_classes_have_the_same_sum():
    classes = Classes(Grid(3, 3, 2), np.array([0, 1, 3]), np.array([2, 1, 0]))
    # Sums 2 to 5: rows of class 1 and 3 with columns of class 1 and 2, two elements each.
    assert classes.universes.tolist() == [2, 2, 2, 2]
    subsets, order, group = classes.subsets(np.array([6, 7, 9, 14]))
    assert group.tolist() == [1, 1, 0, 2]
    assert order.tolist() == [2, 0, 1, 3]
    assert subsets.positions.tolist() == [1, 0, 1, 0]
    assert subsets.counts.tolist() == [1, 2, 1, 0]


def test_a_grid_of_empty_rows_has_one_group_without_elements():
    classes = Classes(Grid(2, 2, 1), np.zeros(2, np.int64), np.ones(2, np.int64))
    assert classes.universes.tolist() == [0]


@pytest.mark.parametrize("densest", [0, 40, 128])
def test_zones_widen_by_the_energy_of_the_bits_that_positions_take_more(densest):
    classes = Classes(Grid(3, 1, 64), np.array([1, 2, 3]), np.array([1]))
    zones = classes.zones(np.array([1, 4, 64]), densest)
    # 6, 4 and 0 bits more than in the densest group; 0.1155 squares of the step a bit.
    expected = [math.sqrt((densest / 64) ** 2 + 0.1155 * bits) * 64 for bits in (6, 4, 0)]
    assert np.abs(zones - expected).max() <= 1
    assert zones[2] == densest


def test_groups_without_values_take_no_part_in_which_is_densest():
    classes = Classes(Grid(2, 1, 64), np.array([1, 2]), np.array([1]))
    assert classes.zones(np.array([64, 0]), 10)[0] == 10


def test_log2_is_within_nine_hundredths_and_exact_at_powers_of_two():
    above = np.arange(1, 5000)
    logs = log2_ratio(above, np.ones_like(above)) / 64
    assert np.abs(logs - np.log2(above)).max() < 0.09 + 1 / 64
    powers = 2 ** np.arange(40)
    assert log2_ratio(powers, np.ones_like(powers)).tolist() == (64 * np.arange(40)).tolist()
