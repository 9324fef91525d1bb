import numpy as np
import pytest

from compression import subsets_read
from compression.bit_string import BitString
from compression.golomb import Subsets, code
from compression.nested import LEVELS, nest
from compression.subsets_read import coded_of, depths, members, read
from fedfreeze.errors import PacketError

DAMAGED = "; the packet is damaged, or another codec wrote it"


def subsets_of(sets):
    """Subsets from pairs of a list of positions and a universe."""
    return Subsets(
        np.array([p for positions, _ in sets for p in positions], np.int64),
        np.array([len(positions) for positions, _ in sets], np.int64),
        np.array([universe for _, universe in sets], np.int64),
    )


def packed(subsets):
    return np.packbits(np.concatenate(code(subsets).bits()), bitorder="little").tobytes()


SETS = [
    [],
    [([], 5)],
    [([0], 1)],
    [([4], 5), ([], 0), ([0, 1, 2], 6)],
    [([0, 999_999], 1_000_000), ([7], 8)],
    [(list(range(50)), 100), (list(range(50, 100)), 100)],
    [(list(range(99)), 100), ([5], 9), (list(range(1, 8)), 8), (list(range(6)), 6)],
]


@pytest.mark.parametrize("piece", [1, 5, 1 << 16])
@pytest.mark.parametrize("sets", SETS)
def test_subsets_come_back(sets, piece, monkeypatch):
    monkeypatch.setattr(subsets_read, "PIECE", piece)
    subsets = subsets_of(sets)
    coded = read(BitString(packed(subsets)), subsets.counts, subsets.universes)
    assert len(coded) == coded_of(subsets.counts, subsets.universes).sum()
    marked = members(coded, subsets.counts, subsets.universes)
    expected = [place in positions for positions, universe in sets for place in range(universe)]
    assert marked.tolist() == expected


def test_universes_beyond_32_bits_keep_their_positions():
    subsets = subsets_of([([3, 2**31 + 5, 2**32 - 3], 2**32 - 2)])
    coded = read(BitString(packed(subsets)), subsets.counts, subsets.universes)
    assert coded.tolist() == [3, 2**31 + 5, 2**32 - 3]


def refused(bits, chosen, universe):
    string = BitString(np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes())
    with pytest.raises(PacketError) as error:
        read(string, np.array([chosen]), np.array([universe]))
    return str(error.value)


def test_a_position_beyond_its_universe_is_refused():
    # One of four has divisor 2: quotient 2 and remainder 0 would be position 4.
    assert refused([0, 0, 0, 1], 1, 4) == (
        f"packet: expected positions inside their universe, got one beyond its end{DAMAGED}"
    )


def test_positions_that_leave_their_universe_together_are_refused():
    # Two of four have divisor 1: gaps 2 and 1 make positions 2 and 4.
    assert refused([0, 0, 1, 0, 1], 2, 4) == (
        f"packet: expected positions inside their universe, got one beyond its end{DAMAGED}"
    )


def test_fewer_bits_than_numbers_are_refused_before_memory_is_taken():
    assert refused([1] * 8, 2**30, 2**31) == (
        f"packet: expected at least {2**30} more bits, got 8{DAMAGED}"
    )


def test_a_number_that_is_missing_is_refused():
    assert refused([1, 0, 0, 0], 2, 4) == f"packet: expected 2 unary numbers, got 1{DAMAGED}"


def test_a_one_in_the_padding_is_refused():
    assert refused([1, 1, 0, 1], 2, 4) == f"packet: expected 2 unary numbers, got more{DAMAGED}"


def test_a_whole_byte_of_padding_is_refused():
    assert refused([0] * 7 + [1] + [0] * 8, 1, 20) != refused([1, 1] + [0] * 14, 2, 4)
    assert refused([1, 1] + [0] * 14, 2, 4) == (
        f"packet: expected less than a byte of padding, got 14 bits{DAMAGED}"
    )


def test_cells_come_back_from_their_planes():
    counts = np.array([40, 0, 300, 7])
    rng = np.random.default_rng(2)
    cells = np.concatenate(
        [rng.integers(0, 3, 40), rng.geometric(0.2, 300) - 1, np.full(7, LEVELS)]
    )
    nested = nest(counts, cells)
    coded = read(BitString(packed(nested.subsets)), nested.subsets.counts, nested.subsets.universes)
    assert depths(nested.levels, coded).tolist() == np.minimum(cells, LEVELS).tolist()
    # What bounds the memory of a decoder.
    assert len(coded) <= counts.sum()
