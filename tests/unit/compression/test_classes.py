import math

import numpy as np
import pytest

from compression.axes import Axes
from compression.classes import COLUMNS, MAX_CLASS, ROWS, Classes, log2_ratio, zones_of


def of_one(shape, rows, columns):
    """Classes of one grid."""
    return Classes(Axes.of([shape]), np.array(rows), np.array(columns))


def test_classes_are_the_bit_lengths_of_the_counts():
    axes, both = Axes.of([(4, 3, 100_000)]), np.array([ROWS | COLUMNS])
    classes = Classes.of(axes, np.array([0, 1, 5, 10**5]), np.array([2, 0, 7]), both)
    assert classes.rows.tolist() == [0, 1, 3, MAX_CLASS]
    assert classes.columns.tolist() == [2, 0, 3]


def test_rows_or_columns_without_classes_are_all_of_one():
    axes = Axes.of([(3, 2), (3, 2), (2, 1)])
    rows, columns = np.array([0, 4, 1] * 2 + [9, 9]), np.array([5, 0] * 2 + [9])
    classes = Classes.of(axes, rows, columns, np.array([ROWS, COLUMNS, 0]))
    assert classes.rows.tolist() == [0, 3, 1, 1, 1, 1, 1, 1]
    assert classes.columns.tolist() == [1, 1, 3, 0, 1]


def test_groups_hold_elements_whose_classes_have_the_same_sum():
    classes = of_one((3, 3, 2), [0, 1, 3], [2, 1, 0])
    # Sums 2 to 5: rows of class 1 and 3 with columns of class 1 and 2, two elements each.
    assert classes.universes.tolist() == [2, 2, 2, 2]
    subsets, order, group = classes.subsets(*classes.axes.split(np.array([6, 7, 9, 14])))
    assert group.tolist() == [1, 1, 0, 2]
    assert order.tolist() == [2, 0, 1, 3]
    assert subsets.positions.tolist() == [1, 0, 1, 0]
    assert subsets.counts.tolist() == [1, 2, 1, 0]


def test_a_grid_without_classes_is_one_group_of_all_its_elements():
    ones = np.ones(7, np.int64)
    classes = Classes(Axes.of([(7,), (3, 4), (3, 4, 2)]), ones, np.ones(9, np.int64))
    assert classes.groups.tolist() == [1, 1, 1]
    assert classes.universes.tolist() == [7, 12, 24]


def test_groups_of_several_grids_are_those_of_each():
    shapes = [(3, 3, 2), (2, 4), (5,), (2, 2)]
    rows = [[0, 1, 3], [2, 2], [1], [0, 0]]
    columns = [[2, 1, 0], [1, 0, 3, 1], [1], [1, 2]]
    alone = [of_one(*grid) for grid in zip(shapes, rows, columns, strict=True)]
    together = Classes(Axes.of(shapes), np.concatenate(rows), np.concatenate(columns))
    assert together.groups.tolist() == [len(a.universes) for a in alone]
    assert together.first_groups.tolist() == [0, 4, 8, 9]
    assert together.universes.tolist() == [n for a in alone for n in a.universes.tolist()]


def test_a_grid_of_empty_rows_has_one_group_without_elements():
    assert of_one((2, 2), [0, 0], [1, 1]).universes.tolist() == [0]


@pytest.mark.parametrize(("classes", "fits"), [(13, True), (14, True), (15, False)])
def test_classes_take_no_more_memory_to_read_than_the_tensor(classes, fits):
    # 6 x (groups x 10 + 60) is at most 1,200 up to 14 groups.
    found = of_one((10, 60, 2), [classes] * 9 + [1], [1] * 60)
    assert found.groups.tolist() == [classes]
    assert found.allowed.tolist() == [fits]


@pytest.mark.parametrize("densest", [0, 40, 128])
def test_zones_widen_by_the_energy_of_the_bits_that_positions_take_more(densest):
    zones = zones_of(
        np.array([64, 64, 64]), np.array([1, 4, 64]), np.array([0]), np.array([densest])
    )
    # 6, 4 and 0 bits more than in the densest group; 0.1155 squares of the step a bit.
    expected = [math.sqrt((densest / 64) ** 2 + 0.1155 * bits) * 64 for bits in (6, 4, 0)]
    assert np.abs(zones - expected).max() <= 1
    assert zones[2] == densest


def test_groups_without_values_take_no_part_in_which_is_densest():
    assert zones_of(np.array([64, 64]), np.array([64, 0]), np.array([0]), np.array([10]))[0] == 10


def test_zones_of_a_unit_do_not_depend_on_those_of_others():
    universes, counts = np.array([64, 64, 500, 64, 64]), np.array([1, 64, 3, 4, 0])
    together = zones_of(universes, counts, np.array([0, 2, 3]), np.array([40, 50, 60]))
    apart = [
        zones_of(universes[own], counts[own], np.array([0]), np.array([zone])).tolist()
        for own, zone in ((slice(0, 2), 40), (slice(2, 3), 50), (slice(3, 5), 60))
    ]
    assert together.tolist() == [zone for unit in apart for zone in unit]


def test_log2_is_within_nine_hundredths_and_exact_at_powers_of_two():
    above = np.arange(1, 5000)
    logs = log2_ratio(above, np.ones_like(above)) / 64
    assert np.abs(logs - np.log2(above)).max() < 0.09 + 1 / 64
    powers = 2 ** np.arange(40)
    assert log2_ratio(powers, np.ones_like(powers)).tolist() == (64 * np.arange(40)).tolist()
