"""What a packet can make a receiver allocate, by the packets that claim most for their bytes."""

import struct
import tracemalloc
import zlib

import numpy as np
import pytest

from compression import CodecSettings, decode, encode
from compression.packet import Kind, close
from compression.reader import varint
from fedfreeze.errors import PacketError
from fedfreeze.layout import Layer, Layout, TensorSpec

SIZE = 1 << 21
PIECES = 8 << 20  # what is worked on at once, whatever the layout


def layout_of(*shapes):
    tensors = tuple(TensorSpec(f"w{n}", shape, "float32") for n, shape in enumerate(shapes))
    return Layout("large", (Layer("all", tensors),))


def affine_row(size, *, flags=0, planes=16, tail_width=20, maps=()):
    """A row that claims all values of a unit and takes no bit for their signs and positions."""
    row = varint(size) + bytes([4 | flags]) + struct.pack("<f", 0.5) + b"\0"
    row += varint(size) * planes + (bytes([tail_width]) if planes == 16 else b"\0")
    return row + b"".join(varint(length) * depth + b"\0" for length, depth in maps)


def sparse(rows, *, joined=b"\0", behind=b""):
    return struct.pack("<f", 1.0) + joined + b"".join(rows) + behind


def tails(size):
    return np.random.default_rng(0).bytes(20 * size // 8)


ROWS = (10_000, 200)  # as many groups, for so many rows, as a tensor of this size may have
CLASSED = affine_row(ROWS[0] * ROWS[1], flags=3, maps=((ROWS[0], 15), (ROWS[1], 15)))
SMALL_ROWS = affine_row(1000 * 80, flags=16, maps=((1000, 7),))

CLAIMS = {
    "values without bits": lambda: ([(SIZE,)], sparse([affine_row(SIZE, planes=0)])),
    "planes without bits": lambda: ([(SIZE,)], sparse([affine_row(SIZE, tail_width=0)])),
    "tails": lambda: ([(SIZE,)], sparse([affine_row(SIZE)], behind=tails(SIZE))),
    "classes": lambda: ([ROWS], sparse([CLASSED], behind=b"\0" + tails(ROWS[0] * ROWS[1]))),
    "a gain for each value": lambda: (
        [(SIZE,)],
        sparse([affine_row(SIZE, flags=16, planes=0, maps=((SIZE, 7),))], behind=b"\0"),
    ),
    "a class for each column of one row": lambda: (
        [(1, SIZE)],
        sparse([affine_row(SIZE, flags=2, planes=0, maps=((SIZE, 15),))], behind=b"\0"),
    ),
    "many units": lambda: (
        [(1000, 80)] * 50,
        sparse([SMALL_ROWS] * 50, joined=b"\0" * 7, behind=b"\0" + tails(80_000 * 50)),
    ),
    "joined tensors": lambda: (
        [(SIZE // 4,)] * 4,
        sparse([affine_row(SIZE)], joined=b"\x0e", behind=tails(SIZE)),
    ),
    "bits that nothing reads": lambda: (
        [(SIZE,)],
        sparse([affine_row(SIZE, planes=0)], behind=b"\xff" * 4 * SIZE),
    ),
    "zeros that nothing reads": lambda: (
        [(SIZE,)],
        sparse([affine_row(SIZE, planes=0)], behind=b"\0" * 4 * SIZE),
    ),
}


def peak_bytes(packet, layout, positions=None):
    tracemalloc.start()
    try:
        decode(packet, layout, max_bytes=len(packet), positions=positions)
    except PacketError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_claim_takes_more_than_four_times_the_layout(claim):
    shapes, body = CLAIMS[claim]()
    layout = layout_of(*shapes)
    packet = close(Kind.SPARSE, layout, layout.names, body, 0)
    assert peak_bytes(packet, layout) <= 4 * 4 * layout.parameter_count + PIECES


@pytest.mark.parametrize("step", [0.3, 2.0])
def test_packets_of_all_rates_take_no_more_than_four_times_the_layout(step):
    size = SIZE // 2
    layout = layout_of((size,))
    update = {"w0": np.random.default_rng(1).laplace(size=size).astype(np.float32)}
    sent = encode(update, layout, ["all"], budget_bytes=4 * size, round_number=0, step=step)
    assert sent.kept > size // 100
    assert peak_bytes(sent.packet, layout) <= 4 * 4 * size + PIECES


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_dense_packets_take_the_layout_and_a_piece(bits):
    layout = layout_of((SIZE,))
    settings = CodecSettings("dense", bits)
    update = {"w0": np.random.default_rng(2).normal(size=SIZE).astype(np.float32)}
    sent = encode(update, layout, ["all"], budget_bytes=5 * SIZE, round_number=0, settings=settings)
    assert peak_bytes(sent.packet, layout) <= 1.5 * 4 * SIZE + PIECES


def test_shared_positions_take_no_more_than_four_times_the_layout():
    layout, positions = layout_of((SIZE,)), {"w0": np.arange(SIZE)}
    checksum = zlib.crc32(np.arange(SIZE).tobytes())
    row = affine_row(SIZE)[len(varint(SIZE)) :]
    body = struct.pack("<fI", 1.0, checksum) + b"\0" + row + tails(SIZE)
    packet = close(Kind.SHARED, layout, layout.names, body, 0)
    assert peak_bytes(packet, layout, positions) <= 4 * 4 * SIZE + PIECES


@pytest.mark.parametrize("share", [0.01, 1.0])
def test_literal_packets_take_no_more_than_four_times_the_layout(share):
    layout = layout_of((SIZE // 2, 1), (SIZE // 2,))
    settings = CodecSettings("literal", density=share)
    rng = np.random.default_rng(3)
    update = {
        name: rng.laplace(size=t.shape).astype(np.float32) ** 3
        for name, t in layout.tensors.items()
    }
    sent = encode(update, layout, ["all"], budget_bytes=9 * SIZE, round_number=0, settings=settings)
    assert sent.kept == round(share * SIZE)
    assert peak_bytes(sent.packet, layout) <= 4 * 4 * SIZE + PIECES
