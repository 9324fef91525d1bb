import numpy as np

from compression.axes import Axes
from compression.candidates import Candidates
from compression.classes import GROUPS
from compression.zones import Zones

SHAPES = [(3, 4, 2), (2, 3), (5,), (4,)]
AXES = Axes.of(SHAPES)
ROWS = np.array([0, 1, 3, 2, 2, 1, 1])
COLUMNS = np.array([2, 1, 0, 5, 1, 0, 2, 1, 1])
# Of values in no group, then of groups 0, 1, ...: all different.
TABLE = 1 + np.arange(4 * (1 + GROUPS)).reshape(4, -1) / 64


def zone_of(tensor, row, column):
    """By the rule: the group is the sum of both classes less 2, and none where one is 0."""
    in_a_group = ROWS[row] and COLUMNS[column]
    return TABLE[tensor, 1 + ROWS[row] + COLUMNS[column] - 2 if in_a_group else 0]


def zones_of_all():
    """The zone of each element of the flat vector."""
    found, first_row, first_column = [], 0, 0
    for tensor, (rows, columns, depth) in enumerate(
        zip(AXES.rows, AXES.columns, AXES.depths, strict=True)
    ):
        found += [
            zone_of(tensor, first_row + row, first_column + column)
            for row in range(rows)
            for column in range(columns)
            for _ in range(depth)
        ]
        first_row, first_column = first_row + rows, first_column + columns
    return np.array(found, np.float32)


ZONES = Zones.of(AXES, ROWS, COLUMNS, TABLE)


def test_zones_of_values_are_those_of_their_groups():
    in_rows, column, _ = AXES.split(np.arange(39))
    assert ZONES.of_values(in_rows, column).tolist() == zones_of_all().tolist()


def test_limits_of_a_tensor_are_its_zones_times_the_step_but_no_more_than_its_floor():
    for tensor, own in enumerate(np.split(zones_of_all(), np.cumsum(AXES.sizes)[:-1])):
        limits = ZONES.limits(AXES, tensor, 0.5, 0.6)
        expected = np.minimum(own * np.float32(0.5), np.float32(0.6))
        shape = (int(AXES.rows[tensor]), -1)
        assert (limits == expected.reshape(shape)).all()


def test_the_narrowest_zone_of_a_row_is_that_of_its_fullest_column():
    falling = Zones.of(AXES, ROWS, COLUMNS, TABLE[:, ::-1])
    in_rows, column, _ = AXES.split(np.arange(39))
    of_values = falling.of_values(in_rows, column)
    ends = AXES.row_ends
    expected = [part.min() for part in np.split(of_values, ends[:-1])]
    assert falling.of_rows(AXES).tolist() == expected


def test_flat_zones_are_one_for_each_tensor():
    in_rows, column, _ = AXES.split(np.arange(39))
    flat = Zones.flat(AXES, np.array([0.5, 1.0, 1.5, 2.0]))
    expected = np.repeat([0.5, 1.0, 1.5, 2.0], AXES.sizes)
    assert flat.of_values(in_rows, column).tolist() == expected.tolist()


def test_candidates_are_all_values_of_at_least_their_zone_or_the_floor_of_their_tensor():
    magnitudes = (3 * np.random.default_rng(1).random(39)).astype(np.float32)
    floors = np.array([np.inf, 0.9, np.inf, 0.5], np.float32)
    found = Candidates.above(magnitudes, AXES, ZONES, 1.25, floors)
    limits = np.minimum(zones_of_all() * np.float32(1.25), np.repeat(floors, AXES.sizes))
    indices = np.flatnonzero(magnitudes >= limits)
    assert 5 < len(indices) < 34
    in_rows, column, _ = AXES.split(indices)
    assert found.indices.tolist() == indices.tolist()
    assert found.magnitudes.tolist() == magnitudes[indices].tolist()
    assert found.columns.tolist() == column.tolist()
    assert found.in_rows.tolist() == in_rows.tolist()
    assert found.row_ends.tolist() == np.cumsum(in_rows).tolist()
