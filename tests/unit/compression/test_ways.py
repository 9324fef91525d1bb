import math

import numpy as np
import pytest

from compression.axes import Axes
from compression.classes import COLUMNS, ROWS
from compression.ways import LEAST_KEPT, Crowd, ways

SHAPES = [(40, 50), (24, 30, 3), (900,), (12, 11)]
AXES = Axes.of(SHAPES)


def crowded(seed):
    """Ascending elements of the vector of all grids, crowded in some rows and columns."""
    rng = np.random.default_rng(seed)
    parts = []
    for shape in SHAPES:
        density = np.full(shape, 3.0)
        for axis, length in enumerate(shape[:2]):
            loud = rng.random(length) ** 3
            density = density * loud.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        parts.append((rng.random(shape) < density).reshape(-1))
    return np.flatnonzero(np.concatenate(parts))


def weighed(elements, may=(True, True, False, True)):
    in_rows, column, _ = AXES.split(elements)
    return ways(AXES, Crowd.of(AXES, in_rows, column), np.array(may))


def marks(elements, number):
    """Which elements of a grid are kept, by row, column and depth."""
    start = sum(math.prod(shape) for shape in SHAPES[:number])
    marked = np.zeros(AXES.sizes.sum(), bool)
    marked[elements] = True
    rows, columns = int(AXES.rows[number]), int(AXES.columns[number])
    return marked[start : start + int(AXES.sizes[number])].reshape(rows, columns, -1)


@pytest.mark.parametrize("flags", [0, ROWS, COLUMNS, ROWS | COLUMNS])
@pytest.mark.parametrize("number", [0, 1])
def test_members_and_universes_of_groups_are_those_that_counting_gives(number, flags):
    elements = crowded(number)
    found = weighed(elements)
    kept = marks(elements, number)
    rows = [int(n).bit_length() if flags & ROWS else 1 for n in kept.sum(axis=(1, 2))]
    columns = [int(n).bit_length() if flags & COLUMNS else 1 for n in kept.sum(axis=(0, 2))]
    members, universes = np.zeros(29, int), np.zeros(29, int)
    for row, row_class in enumerate(rows):
        for column, column_class in enumerate(columns):
            if row_class and column_class:
                group = row_class + column_class - 2
                members[group] += kept[row, column].sum()
                universes[group] += kept.shape[2]
    assert found.members[flags, number].tolist() == members.tolist()
    assert found.universes[flags, number].tolist() == universes.tolist()


def test_the_bits_of_a_grid_without_classes_are_nearly_those_of_the_binomial():
    elements = crowded(3)
    bits = weighed(elements).bits
    for number, shape in enumerate(SHAPES):
        size, kept = math.prod(shape), int(marks(elements, number).sum())
        assert bits[0, number] == pytest.approx(math.log2(math.comb(size, kept)), abs=8)


def test_classes_of_a_crowded_grid_take_fewer_bits():
    bits = weighed(crowded(4)).bits
    assert (bits[1:, 0] < bits[0, 0]).any()


def test_a_grid_that_may_have_no_classes_has_none_nor_one_of_too_few_values():
    elements = crowded(5)
    few = np.concatenate([elements[elements < 2000][: LEAST_KEPT - 1], elements[elements >= 2000]])
    bits = weighed(few).bits
    assert np.isinf(bits[1:, 0]).all()
    assert np.isfinite(bits[1:, 1]).any()
    assert np.isinf(bits[1:, 2]).all()


def test_classes_that_a_decoder_would_refuse_cost_more_than_anything():
    # 12 x 11 elements allow for 22 numbers, of which 11 are for the columns: no group of 12 rows.
    elements = 2000 + 2160 + 900 + np.arange(132)
    bits = weighed(elements).bits
    assert np.isinf(bits[1:, 3]).all()
    assert np.isfinite(bits[0, 3])


def test_where_no_grid_has_classes_one_way_is_left():
    assert weighed(crowded(6), (False,) * 4).bits.shape == (1, 4)
