"""What holds for every subset, its classes and its planes."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compression.axes import Axes
from compression.bit_string import BitString
from compression.classes import COLUMNS, ROWS, Classes
from compression.golomb import Subsets, code, joined
from compression.nested import LEVELS, nest
from compression.segments import Segments
from compression.subsets_read import coded_of, depths, members, read
from compression.units import Content, Units, join
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
    st.lists(
        st.tuples(
            st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 9)),
            st.sampled_from([0, ROWS, COLUMNS, ROWS | COLUMNS]),
            DENSITIES,
        ),
        min_size=1,
        max_size=4,
    ),
    SEEDS,
)
def test_positions_come_back_from_their_groups(grids, seed):
    rng = np.random.default_rng(seed)
    parts = []
    for shape, _, density in grids:
        loud = rng.random((shape[0], 1, 1)) * rng.random((1, shape[1], 1)) * 2
        parts.append(np.flatnonzero(rng.random(shape) < density * loud))
    axes = Axes.of(shape if flags else (math.prod(shape),) for shape, flags, _ in grids)
    positions = np.concatenate(parts)
    starts = np.repeat(np.cumsum(axes.sizes) - axes.sizes, [len(part) for part in parts])
    in_rows, column, inner = axes.split(positions + starts)
    classes = Classes.of(
        axes,
        in_rows,
        np.bincount(column, minlength=int(axes.columns.sum())),
        np.array([flags for _, flags, _ in grids]),
    )
    subsets, order, group = classes.subsets(in_rows, column, inner)
    assert subsets.counts.tolist() == np.bincount(group, minlength=len(subsets.counts)).tolist()
    of_each = np.repeat(np.arange(len(subsets.counts)), subsets.counts)
    assert group[order].tolist() == of_each.tolist()
    assert (subsets.positions < subsets.universes[of_each]).all()
    begins = np.cumsum(subsets.universes) - subsets.universes
    places = subsets.positions + begins[of_each]
    assert classes.positions(places, of_each).tolist() == positions[order].tolist()
    # All elements of all groups are different elements of their grids.
    of_all = np.repeat(np.arange(len(subsets.counts)), subsets.universes)
    every = classes.positions(np.arange(int(subsets.universes.sum())), of_all)
    pairs = set(zip(classes.grid_of_group[of_all].tolist(), every.tolist(), strict=True))
    assert len(pairs) == len(every)
    assert (every < axes.sizes[classes.grid_of_group[of_all]]).all()


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
    st.lists(
        st.tuples(st.integers(0, 50), st.floats(0, 1), st.booleans(), st.integers(0, 1)),
        min_size=1,
        max_size=9,
    )
)
def test_units_hold_every_tensor_once_and_those_that_are_alone_alone(rows):
    sizes, _, alone, gains = (list(column) for column in zip(*rows, strict=True))
    held = [
        None if single else Content(size, (round(size * share),)) for size, share, single, _ in rows
    ]
    joined_ = join(held, gains)
    assert not joined_[0]
    layout = Layout(
        "m",
        (Layer("l", tuple(TensorSpec(str(n), (s,), "float32") for n, s in enumerate(sizes))),),
    )
    units = Units.of(Segments.of(layout, ["l"]), joined_)
    assert units.sizes.sum() == sum(sizes)
    assert np.bincount(units.members, weights=sizes).tolist() == units.sizes.tolist()
    for number, single in enumerate(alone):
        together = np.flatnonzero(units.members == units.members[number])
        assert not single or len(together) == 1
        assert {gains[n] for n in together} == {gains[number]}
