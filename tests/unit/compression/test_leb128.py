import numpy as np
import pytest

from compression import leb128
from compression.bit_string import PIECE
from compression.reader import Reader, varint
from fedfreeze.errors import PacketError

DAMAGED = "; the packet is damaged, or another codec wrote it"
EDGES = [0, 1, 127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**35 - 1]


def read(data, count, largest=2**35):
    reader = Reader(data)
    pieces = list(leb128.counts(reader, count, largest))
    return np.concatenate([np.zeros(0, np.int64), *pieces]).tolist(), reader.left


def refused(data, count, largest=1000):
    with pytest.raises(PacketError) as error:
        read(data, count, largest)
    return str(error.value)


def test_many_counts_are_written_as_one_by_one():
    expected = b"".join(varint(value) for value in EDGES)
    assert leb128.written(np.array(EDGES)) == expected
    assert leb128.byte_lengths(np.array(EDGES)).tolist() == [len(varint(v)) for v in EDGES]
    assert leb128.written(np.zeros(0, np.int64)) == b""


def test_what_is_written_is_read_and_no_byte_more():
    assert read(leb128.written(np.array(EDGES)) + b"\x05", len(EDGES)) == (EDGES, 1)
    assert read(b"\x05", 0) == ([], 1)


def test_counts_are_read_across_the_edges_of_pieces():
    # Three bytes each, so a piece of 2^16 bytes ends inside a number.
    values = np.random.default_rng(0).integers(2**14, 2**21, PIECE)
    assert read(leb128.written(values), PIECE) == (values.tolist(), 0)


@pytest.mark.parametrize(
    ("data", "count", "said"),
    [
        (b"\x05", 2, "expected 1 more bytes, got 0"),
        (b"\x05\x80\x80", 2, "expected 3 more bytes, got 2"),
        (b"\x05\x80\x00", 2, "expected the shortest form of a count, got a longer one"),
        (b"\x80" * 5 + b"\x01", 1, "expected a count of at most 5 bytes, got a longer one"),
        (b"\xff" * 9, 1, "expected a count of at most 5 bytes, got a longer one"),
        (b"\xe9\x07\x05", 2, "expected a count up to 1000, got 1001"),
    ],
)
def test_what_no_encoder_writes_is_refused(data, count, said):
    assert refused(data, count) == f"packet: {said}{DAMAGED}"
