import math

import numpy as np
import pytest

from compression.segments import Segments
from compression.units import Units, join
from tests.unit.compression.sample_layouts import network


def test_units_lie_one_behind_another_in_the_flat_vector():
    layout = network()
    segments = Segments.of(layout, layout.names)
    # The large tensors come first: conv, body, head of 1,152, 2,560 and 1,200; then their biases.
    joined = np.array([False, False, True, False, True, True])
    units = Units.of(segments, joined)
    assert units.sizes.tolist() == [1152, 3760, 66]
    assert units.starts.tolist() == [0, 1152, 4912]
    assert units.members.tolist() == [0, 1, 1, 2, 2, 2]
    assert [None if t is None else t.name for t in units.tensors] == ["conv.weight", None, None]
    assert len(units) == 3


def test_no_tensors_make_no_units():
    layout = network()
    units = Units.of(Segments.of(layout, []), np.zeros(0, np.bool_))
    assert (len(units), units.sizes.tolist(), units.tensors) == (0, [], ())


@pytest.mark.parametrize("kept", [1, 8, 32])
def test_neighbours_of_equal_density_are_joined(kept):
    # One row of the table is saved, and positions cost the same.
    assert join([kept] * 5, [64] * 5, [False] * 5).tolist() == [False, True, True, True, True]


def test_a_dense_tensor_does_not_join_a_sparse_one_where_positions_would_cost_more():
    counts, sizes = [10, 900], [10_000, 1000]

    def bits(k, n):
        return math.log2(math.comb(n, k))

    apart = sum(bits(k, n) for k, n in zip(counts, sizes, strict=True))
    assert bits(sum(counts), sum(sizes)) - apart > 100
    assert join(counts, sizes, [False, False]).tolist() == [False, False]


def test_a_tensor_that_is_to_be_alone_joins_none_and_none_joins_it():
    assert join([1] * 4, [64] * 4, [False, True, False, False]).tolist() == [
        False,
        False,
        False,
        True,
    ]


def test_empty_tensors_join_at_no_cost():
    assert join([0, 0, 0], [5, 0, 900], [False] * 3).tolist() == [False, True, True]
