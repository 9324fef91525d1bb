import numpy as np

from compression.axes import Axes, counts_between


def test_a_grid_counts_everything_behind_two_dimensions_as_depth():
    axes = Axes.of([(8, 4), (8, 4, 3, 5)])
    assert (axes.rows.tolist(), axes.columns.tolist(), axes.depths.tolist()) == (
        [8, 8],
        [4, 4],
        [1, 15],
    )
    assert axes.sizes.tolist() == [32, 480]


def test_vectors_scalars_and_what_holds_nothing_are_one_row_and_one_column():
    axes = Axes.of([(5,), (), (0, 3)])
    assert (axes.rows.tolist(), axes.columns.tolist(), axes.depths.tolist()) == (
        [1, 1, 1],
        [1, 1, 1],
        [5, 1, 0],
    )
    assert axes.several.tolist() == [False, False, False]


def test_one_row_or_one_column_of_several_is_a_grid():
    assert Axes.of([(1, 4), (4, 1), (1, 1, 9)]).several.tolist() == [True, True, False]


def test_rows_and_columns_are_numbered_through():
    axes = Axes.of([(2, 3), (4,), (1, 2)])
    assert axes.first_rows.tolist() == [0, 2, 3]
    assert axes.first_columns.tolist() == [0, 3, 4]
    assert axes.grid_of_row.tolist() == [0, 0, 1, 2]
    assert axes.grid_of_column.tolist() == [0, 0, 0, 1, 2, 2]


def test_elements_are_split_as_numpy_splits_them():
    axes = Axes.of([(6, 5, 2, 3), (4, 7), (0, 2), (3,)])
    chosen = np.flatnonzero(np.random.default_rng(0).random(180 + 28 + 3) < 0.4)
    in_rows, column, inner = axes.split(chosen)
    first = np.unravel_index(chosen[chosen < 180], (6, 5, 6))
    second = np.unravel_index(chosen[(chosen >= 180) & (chosen < 208)] - 180, (4, 7))
    third = chosen[chosen >= 208] - 208
    # The empty tensor has a row and a column as well, number 10 and 12.
    rows = [*first[0], *(second[0] + 6), *([11] * len(third))]
    assert in_rows.tolist() == np.bincount(rows, minlength=12).tolist()
    assert column.tolist() == [*first[1], *(second[1] + 5), *([13] * len(third))]
    assert inner.tolist() == [*first[2], *([0] * len(second[0])), *third]


def test_elements_are_split_exactly_up_to_2_to_the_52():
    # Just below, at and just above whole multiples, where a rounded quotient would be one off.
    depth = 5 * 2**26 + 1
    axes = Axes.of([(2, 2**22, depth)])
    numbers = np.array([1, 2, 3, 2**10 + 1, 2**22 - 1])
    indices = np.unique(np.concatenate([numbers * depth + off for off in (-1, 0, 1)]))
    in_rows, column, inner = axes.split(indices)
    expected = [divmod(index, depth) for index in indices.tolist()]
    assert in_rows.tolist() == [len(indices), 0]
    assert column.tolist() == [c for c, _ in expected]
    assert inner.tolist() == [i for _, i in expected]


def test_numbers_are_counted_up_to_each_end():
    counts = counts_between(np.array([0, 1, 5, 8]), np.array([0, 2, 2, 6, 9]))
    assert counts.tolist() == [0, 2, 0, 1, 1]
    assert counts_between(np.array([], np.int64), np.array([3, 4])).tolist() == [0, 0]
