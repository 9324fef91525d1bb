"""No packet makes a receiver take a block of memory larger than two layouts, and a piece."""

import sys
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest

from compression import CodecSettings, decode, encode
from compression.bit_string import PIECE
from compression.packet import Kind, close
from fedfreeze.errors import PacketError
from fedfreeze.layout import Layer, Layout, TensorSpec
from tests.unit.compression.allocations import largest_growth
from tests.unit.compression.golden_packets import GOLDEN
from tests.unit.compression.packet_mutants import mutants
from tests.unit.compression.test_decode_memory import CLAIMS, layout_of

# Work goes on in pieces of so many numbers of 64 bits, and one function of numpy may hold two such
# arrays at once. The layout does not change that.
PIECES = 2 * 8 * PIECE
SIZE = 1 << 19
MUTANTS = 25


def growth(packet, layout, positions=None):
    def read():
        with suppress(PacketError):
            decode(packet, layout, max_bytes=len(packet), positions=positions)

    return largest_growth(read)


def assert_bounded(packet, layout, positions=None):
    found = growth(packet, layout, positions)
    assert found.nbytes <= 2 * 4 * layout.parameter_count + PIECES, found.where


# The instrument itself.


def test_the_instrument_sees_a_block_that_is_given_back_at_once():
    assert largest_growth(lambda: int(np.zeros(1 << 20, np.uint8)[0])).nbytes >= 1 << 20


def test_the_instrument_sees_a_block_taken_after_a_larger_one_died_with_its_function():
    def large():
        held = np.zeros(1 << 21, np.uint8)
        return int(held[0]) + 1

    def both():
        large()
        return np.zeros((1 << 20) + large() - 1, np.uint8)

    found = largest_growth(both)
    assert 1 << 21 <= found.nbytes < (1 << 21) + 4096
    assert "(large)" in found.where


def test_the_instrument_tells_two_blocks_of_one_line_apart():
    found = largest_growth(lambda: (np.zeros(1 << 20, np.uint8), np.zeros(1 << 20, np.uint8)))
    assert 1 << 20 <= found.nbytes < (1 << 20) + 4096


def test_the_instrument_leaves_nothing_on_behind_an_error():
    before = sys.gettrace()

    def bad():
        raise PacketError("no")

    with pytest.raises(PacketError):
        largest_growth(bad)
    assert (sys.gettrace(), tracemalloc.is_tracing()) == (before, False)


# Packets.


def network(size):
    """Half of the parameters in a convolution, the rest in a matrix and two vectors."""
    shapes = ((size // 512, 32, 2, 4), (size // 1024, 256), (size // 8,), (size // 8,))
    return Layout(
        "wide",
        tuple(
            Layer(f"{n}", (TensorSpec(f"{n}.w", shape, "float32"),))
            for n, shape in enumerate(shapes)
        ),
    )


def updates(layout, seed):
    rng = np.random.default_rng(seed)
    return {
        name: (rng.laplace(size=t.shape) * np.exp(rng.normal(size=t.shape[:1])).reshape(
            [-1] + [1] * (len(t.shape) - 1)
        )).astype(np.float32)
        for name, t in layout.tensors.items()
    }  # fmt: skip


def sent(layout, budget_bytes, **options):
    update = updates(layout, 1)
    return encode(
        update, layout, layout.names, budget_bytes=budget_bytes, round_number=0, **options
    )


RATES = {
    "dense of 8 bits": (9, {"settings": CodecSettings("dense", 8)}),
    "dense of 16 bits": (17, {"settings": CodecSettings("dense", 16)}),
    "dense of 32 bits": (33, {"settings": CodecSettings("dense", 32)}),
    "0.1 bits": (0.1, {}),
    "1 bit": (1, {}),
    "3 bits": (3, {}),
    "7 bits": (7, {}),
    "literal, few": (0.1, {"settings": CodecSettings("literal")}),
    "literal, many": (20, {"settings": CodecSettings("literal")}),
}


@pytest.mark.parametrize("rate", RATES)
def test_packets_of_every_rate_take_no_block_larger_than_two_layouts(rate):
    layout = network(SIZE)
    bits, options = RATES[rate]
    came = sent(layout, int(bits * SIZE / 8), **options)
    assert not came.empty
    assert_bounded(came.packet, layout)


@pytest.mark.parametrize("share", [7, 1])
def test_shared_positions_take_no_block_larger_than_two_layouts(share):
    layout = network(SIZE)
    positions = {name: np.arange(0, t.size, share) for name, t in layout.tensors.items()}
    came = sent(layout, SIZE // 2, positions=positions)
    assert not came.empty
    assert_bounded(came.packet, layout, positions)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_packets_take_no_block_larger_than_two_layouts_and_a_piece(name):
    layout, packet, positions = GOLDEN[name]()
    assert_bounded(packet, layout, positions)


# What many units claim takes long to follow, and each of them claims what one does.
@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim != "many units"])
def test_no_claim_takes_a_block_larger_than_two_layouts(claim):
    shapes, body = CLAIMS[claim]()
    layout = layout_of(*shapes)
    packet = close(Kind.SPARSE, layout, layout.names, body, 0)
    assert_bounded(packet, layout)


@pytest.mark.parametrize("name", ["0.1 bits", "3 bits", "literal, few", "dense of 8 bits"])
def test_mutants_of_large_packets_take_no_block_larger_than_two_layouts(name):
    layout = network(SIZE // 4)
    bits, options = RATES[name]
    packet = sent(layout, int(bits * SIZE / 4 / 8), **options).packet
    for mutant in mutants(np.random.default_rng(5), packet, MUTANTS):
        assert_bounded(mutant, layout)


def test_mutants_of_the_table_take_no_block_larger_than_two_layouts():
    # Nearly all bytes of so short a packet are its table.
    layout = network(SIZE // 4)
    packet = sent(layout, 150).packet
    for mutant in mutants(np.random.default_rng(6), packet, 5 * MUTANTS):
        assert_bounded(mutant, layout)
