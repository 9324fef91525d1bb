"""What holds for every subset, its classes and its planes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compression.bit_string import BitString
from compression.classes import COLUMNS, ROWS, Classes, Grid
from compression.golomb import Subsets, code, joined
from compression.nested import LEVELS, nest
from compression.segments import Segments
from compression.subsets_read import coded_of, depths, members, read
from compression.units import Units, join
from fedfreeze.layout import Layer, Layout, TensorSpec

SEEDS = st.integers(0, 2**32 - 1)
DENSITIES = st.sampled_from([0, 0.001, 0.03, 0.3, 0.5, 0.7, 0.99, 1])


def packed(subsets):
    return np.packbits(np.concatenate(code(subsets).bits()), bitorder="little").tobytes()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), DENSITIES), max_size=6), SEEDS)
def test_subsets_of_any_density_come_back(sizes, seed):
    rng = np.random.default_rng(seed)
    marks = [rng.random(size) < density for size, density in sizes]
    subsets = joined(
        [
            Subsets(np.flatnonzero(mark), np.array([mark.sum()]), np.array([len(mark)]))
            for mark in marks
        ]
    )
    coded = read(BitString(packed(subsets)), subsets.counts, subsets.universes)
    found = members(coded, subsets.counts, subsets.universes)
    assert found.tolist() == np.concatenate([np.zeros(0, bool), *marks]).tolist()
    # Of each subset, never more than half is coded.
    assert (2 * coded_of(subsets.counts, subsets.universes) <= subsets.universes).all()


@settings(max_examples=300, deadline=None)
@given(
    st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 9)),
    st.sampled_from([ROWS, COLUMNS, ROWS | COLUMNS]),
    DENSITIES,
    SEEDS,
)
def test_positions_come_back_from_their_groups(shape, flags, density, seed):
    rng = np.random.default_rng(seed)
    grid = Grid.of(shape)
    loud = rng.random((shape[0], 1, 1)) * rng.random((1, shape[1], 1)) * 2
    positions = np.flatnonzero(rng.random(shape) < density * loud)
    row, column, _ = grid.split(positions)
    classes = Classes.of(
        grid,
        np.bincount(row, minlength=grid.rows),
        np.bincount(column, minlength=grid.columns),
        flags,
    )
    subsets, order, group = classes.subsets(positions)
    assert subsets.counts.tolist() == np.bincount(group, minlength=len(subsets.counts)).tolist()
    assert (subsets.positions < np.repeat(subsets.universes, subsets.counts)).all()
    begins = np.cumsum(subsets.universes) - subsets.universes
    flat = subsets.positions + np.repeat(begins, subsets.counts)
    assert classes.positions(flat).tolist() == positions[order].tolist()
    # All elements of all groups are different elements of the tensor.
    every = classes.positions(np.arange(int(subsets.universes.sum())))
    assert len(set(every.tolist())) == len(every)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=5), st.floats(0.02, 0.99), SEEDS)
def test_cells_come_back_from_their_planes_and_tails(counts, p, seed):
    cells = np.random.default_rng(seed).geometric(p, sum(counts)) - 1
    nested = nest(np.array(counts, np.int64), cells)
    coded = read(BitString(packed(nested.subsets)), nested.subsets.counts, nested.subsets.universes)
    found = depths(nested.levels, coded).astype(np.int64)
    found[found == LEVELS] += nested.tails
    assert found.tolist() == cells.tolist()
    assert len(coded) <= len(cells)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1), st.booleans()), min_size=1, max_size=9)
)
def test_units_hold_every_tensor_once_and_those_that_are_alone_alone(rows):
    sizes = [size for size, _, _ in rows]
    alone = [single for _, _, single in rows]
    joined_ = join([round(size * share) for size, share, _ in rows], sizes, alone)
    assert not joined_[0]
    layout = Layout(
        "m",
        (Layer("l", tuple(TensorSpec(str(n), (s,), "float32") for n, s in enumerate(sizes))),),
    )
    units = Units.of(Segments.of(layout, ["l"]), joined_)
    assert units.sizes.sum() == sum(sizes)
    assert np.bincount(units.members, weights=sizes).tolist() == units.sizes.tolist()
    for number, single in enumerate(alone):
        assert not single or (units.members == units.members[number]).sum() == 1
