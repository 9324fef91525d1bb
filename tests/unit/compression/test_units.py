import math
from itertools import pairwise, product

import numpy as np
import pytest

from compression.segments import Segments
from compression.units import Content, Units, contents, join
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


def holding(size, *cells, tail=0, tail_width=0, near=1.0):
    """So many values in cells 0, 1, ... among so many elements, and some in tails.

    Those of cell 0 lie ``near`` steps from 0 in the mean.
    """
    return Content(size, cells, tail, tail_width, near * (cells[0] if cells else 0))


def joins(*held, gains=None):
    return join(held, gains or [0] * len(held)).tolist()


# What a unit costs, written down anew: plane by plane as the packet carries it.


def subset_bits(members, universe):
    if members in {0, universe}:
        return 0.0
    p = members / universe
    return universe * (-p * math.log2(p) - (1 - p) * math.log2(1 - p))


def varint_bits(count):
    return 8 * max(1, math.ceil(count.bit_length() / 7))


def unit_cost(members):
    """Bits of one unit of these contents, and error in bits as 0.1155 squares of the step each."""
    size = sum(m.size for m in members)
    cells = [sum(m.cells[c] for m in members if c < len(m.cells)) for c in range(16)]
    cells.append(sum(m.tails for m in members))
    kept = sum(cells)
    if not kept:
        return varint_bits(0)
    planes = [sum(cells[first:]) for first in range(17)]  # those in this cell or above
    bits = subset_bits(kept, size)
    bits += sum(subset_bits(inner, outer) for outer, inner in pairwise(planes))
    bits += planes[16] * max(m.tail_width for m in members)
    bits += varint_bits(kept) + 8 + 8 + 8  # flags, dead zone, offset
    # How far the means of the members' first cells lie from that of all, above that of each.
    filled = [(m.cells[0], m.near / m.cells[0]) for m in members if m.cells and m.cells[0]]
    if filled:
        mean = sum(n * each for n, each in filled) / cells[0]
        bits += sum(n * (each - mean) ** 2 for n, each in filled) / 0.1155
    return bits + sum(varint_bits(n) for n in planes[1:] if n) + 8


def ways(count):
    """All ways to join so many tensors to the ones before."""
    return [[False, *rest] for rest in product([False, True], repeat=count - 1)]


def cost(held, gains, joined):
    """Infinite where tensors share a unit that must not."""
    units = []
    for place, together in enumerate(joined):
        units = [*units[:-1], [*units[-1], place]] if together else [*units, [place]]
    total = 0.0
    for unit in units:
        if len(unit) > 1 and (
            any(held[n] is None for n in unit) or len({gains[n] for n in unit}) > 1
        ):
            return math.inf
        total += unit_cost([held[n] for n in unit if held[n] is not None] or [holding(1, 1)])
    return total


def drawn(seed):
    """Up to six tensors of a few densities and magnitudes, some alone, some with gains."""
    rng = np.random.default_rng(seed)
    held, gains = [], []
    for _ in range(int(rng.integers(2, 7))):
        size = int(rng.choice([1, 8, 64, 64, 64, 1000]))
        share, off = rng.choice([0, 0.02, 0.3, 0.9]), rng.choice([0.1, 0.5, 0.9])
        cells = np.minimum(rng.geometric(off, rng.binomial(size, share)) - 1, 20)
        below = tuple(np.bincount(cells[cells < 16]).tolist())
        width = int(max(cells.max(initial=0) - 16, 0)).bit_length()
        near = float(rng.choice([0.9, 1.0, 1.6])) * (below[0] if below else 0)
        own = Content(size, below, int((cells >= 16).sum()), width, near)
        held.append(None if rng.random() < 0.1 else own)
        gains.append(int(rng.random() < 0.2))
    return held, gains


@pytest.mark.parametrize("seed", range(40))
def test_costs_differ_as_those_of_the_parts_in_the_packet(seed):
    held = [own for own in drawn(seed)[0] if own is not None]
    for one, other in pairwise(held):
        apart = unit_cost([one]) + unit_cost([other])
        gained = (one + other).cost - one.cost - other.cost
        assert gained == pytest.approx(unit_cost([one, other]) - apart, abs=1e-6)


@pytest.mark.parametrize("kept", [1, 8, 32])
def test_neighbours_of_equal_density_are_joined(kept):
    # One row of the table is saved, and positions cost the same.
    assert joins(*[holding(64, kept)] * 5) == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("held", "best"),
    [
        # A row of the table is 5 bytes and what the one unit's positions cost more.
        ([holding(10_000, 10), holding(1000, 900)], [False, False]),
        ([holding(100, 10), holding(100, 12)], [False, True]),
        # As dense, but the values of one are large: their planes do not mix.
        ([holding(900, 400), holding(900, *[50] * 8)], [False, False]),
        ([holding(900, 400), holding(900, 380, 20)], [False, True]),
        # A place of cell 0 of their own for 100 values each, .45 of a step from the common one.
        ([holding(900, 100), holding(900, 100, near=1.9)], [False, False]),
        ([holding(900, 100), holding(900, 100, near=1.1)], [False, True]),
        # Tails of 20 bits for all would be dearer than another row.
        ([holding(90, tail=60, tail_width=20), holding(90, tail=60)], [False, False]),
        ([holding(90, tail=60, tail_width=1), holding(90, tail=60)], [False, True]),
        ([holding(64, 1), holding(64, 60), holding(64, 58), holding(1)], [False] * 2 + [True] * 2),
    ],
    ids=[
        "density",
        "alike",
        "planes",
        "alike planes",
        "places",
        "alike places",
        "tails",
        "alike tails",
        "four",
    ],
)
def test_what_is_joined_is_the_best_of_all_ways(held, best):
    gains = [0] * len(held)
    assert min(ways(len(held)), key=lambda way: cost(held, gains, way)) == best
    assert joins(*held) == best


def test_of_all_ways_the_cheapest_is_found_but_for_a_few_bytes_now_and_then():
    lost = []
    for seed in range(400):
        held, gains = drawn(seed)
        best = min(cost(held, gains, way) for way in ways(len(held)))
        lost.append(cost(held, gains, join(held, gains).tolist()) - best)
    assert min(lost) > -1e-6
    assert np.mean(np.array(lost) < 1e-6) >= 0.99
    assert max(lost) < 8 * 3


def test_a_tensor_that_is_to_be_alone_joins_none_and_none_joins_it():
    few = holding(64, 1)
    assert joins(few, None, few, few) == [False, False, False, True]


def test_tensors_of_different_gains_share_no_unit():
    few = holding(64, 1)
    assert joins(few, few, few, few, gains=[0, 1, 1, 0]) == [False, False, True, False]


def test_empty_tensors_join_at_no_cost():
    assert joins(holding(5), holding(0), holding(900)) == [False, True, True]


def test_contents_count_the_cells_of_the_tensors_that_are_examined():
    cells = np.array([0, 0, 1, 0, 16, 40])
    distances = np.array([1.0, 1.25, 2.5, 1.5, 17.0, 41.0])
    examined = np.array([True, False, True])
    found = contents([9, 50, 7], np.array([4, 3, 2]), cells, distances, examined)
    assert found == [holding(9, 3, 1, near=1.25), None, holding(7, tail=2, tail_width=5)]
