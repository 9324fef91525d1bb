import numpy as np
import pytest

from compression import golomb
from compression.classes import COLUMNS, ROWS, zones_of
from compression.placement import place
from compression.segments import Segments
from compression.units import Units
from compression.ways import LEAST_KEPT
from fedfreeze.layout import Layer, Layout, TensorSpec

SHAPE = (40, 60)


def units_of(*shapes):
    layout = Layout(
        "m",
        tuple(
            Layer(str(n), (TensorSpec(f"{n}.w", shape, "float32"),))
            for n, shape in enumerate(shapes)
        ),
    )
    segments = Segments.of(layout, layout.names)
    return Units.of(segments, np.zeros(len(shapes), np.bool_))


def chosen(density, seed=0):
    """Flat indices of a random subset with the density of each element."""
    return np.flatnonzero(np.random.default_rng(seed).random(SHAPE).reshape(-1) < density)


def rank_one(seed):
    rng = np.random.default_rng(seed)
    loud = np.exp(rng.normal(0, 2, (SHAPE[0], 1))) * np.exp(rng.normal(0, 2, (1, SHAPE[1])))
    return np.minimum(0.02 * loud, 0.95).reshape(-1)


def placed(indices, flags=None):
    return place(units_of(SHAPE), np.array([len(indices)]), indices, flags)


@pytest.mark.parametrize(
    ("axis", "flag"), [(0, ROWS), (1, COLUMNS)], ids=["crowded rows", "crowded columns"]
)
def test_the_axis_along_which_values_crowd_has_classes(axis, flag):
    density = np.full(SHAPE, 0.01)
    np.moveaxis(density, axis, 0)[::8] = 0.6
    assert placed(chosen(density.reshape(-1))).flags.tolist() == [flag]


def test_values_that_lie_anywhere_have_no_classes():
    assert placed(chosen(0.1)).flags.tolist() == [0]


@pytest.mark.parametrize("seed", range(5))
def test_classes_never_cost_more_than_plain_positions(seed):
    indices = chosen(rank_one(seed), seed)
    free = golomb.code(placed(indices).subsets).bit_count
    plain = golomb.code(placed(indices, np.zeros(1, np.int64)).subsets).bit_count
    assert free < plain


def test_too_few_values_to_pay_for_classes_have_none():
    assert placed(np.arange(LEAST_KEPT - 1)).flags.tolist() == [0]
    assert placed(np.arange(LEAST_KEPT)).flags.tolist() != [0]


def test_the_order_of_travel_is_by_group_and_ascending_in_each():
    indices = chosen(rank_one(1), 1)
    found = placed(indices)
    group = found.group[found.order]
    assert (np.diff(group) >= 0).all()
    for number in np.unique(group):
        assert (np.diff(found.order[group == number]) > 0).all()
    assert sorted(found.order.tolist()) == list(range(len(indices)))


def test_zones_of_values_are_those_of_their_groups():
    indices = chosen(rank_one(2), 2)
    found = placed(indices)
    members = np.bincount(found.group, minlength=len(found.subsets.universes))
    of_groups = zones_of(found.subsets.universes, members, np.array([0]), np.array([50]))
    assert found.zones(np.array([50]), np.array([len(indices)])).tolist() == [
        of_groups[group] for group in found.group
    ]


def test_vectors_and_joined_tensors_have_no_classes():
    assert place(units_of((500,)), np.array([100]), np.arange(100)).flags.tolist() == [0]


@pytest.mark.parametrize("flags", [ROWS, COLUMNS, ROWS | COLUMNS])
@pytest.mark.parametrize("shape", [(10, 128), (128, 10), (4, 9), (60, 60)])
@pytest.mark.parametrize("seed", range(4))
def test_flags_chosen_for_other_values_are_dropped_where_a_decoder_would_refuse_them(
    shape, flags, seed
):
    rng = np.random.default_rng(seed)
    density = np.minimum(np.exp(rng.normal(-3, 3, (shape[0], 1)) + rng.normal(0, 2, shape[1])), 1)
    indices = np.flatnonzero(rng.random(shape).reshape(-1) < density.reshape(-1))
    given = np.array([flags, 0])
    found = place(units_of(shape, (5,)), np.array([len(indices), 0]), indices, given)

    taken = np.zeros(shape, np.int64)
    taken.reshape(-1)[indices] = 1
    by_row = [int(count).bit_length() for count in taken.sum(axis=1)]
    by_column = [int(count).bit_length() for count in taken.sum(axis=0)]
    groups = max(by_row) * bool(flags & ROWS) + max(by_column) * bool(flags & COLUMNS)
    groups -= flags == ROWS | COLUMNS
    fits = 6 * (groups * shape[0] + shape[1]) <= shape[0] * shape[1]
    assert found.flags.tolist() == [flags if fits else 0, 0]
