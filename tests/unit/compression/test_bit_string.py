import numpy as np
import pytest

from compression import bit_string
from compression.bit_string import BitString, by_planes, owners
from compression.bits import to_planes
from fedfreeze.errors import PacketError


def packed(bits):
    return np.packbits(bits, bitorder="little").tobytes()


def test_bits_are_found_wherever_they_begin():
    bits = np.random.default_rng(0).integers(0, 2, 80).astype(np.uint8)
    string = BitString(packed(bits))
    string.skip(80)
    for place in range(20):
        for count in (0, 1, 7, 8, 33):
            assert string.bits(place, count).tolist() == bits[place : place + count].tolist()


def test_more_bits_than_are_left_are_refused():
    string = BitString(b"\x01")
    string.skip(3)
    with pytest.raises(PacketError) as error:
        string.skip(6)
    assert str(error.value) == (
        "packet: expected 6 more bits, got 5; the packet is damaged, or another codec wrote it"
    )


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_planes_come_back_in_pieces_of_any_size(piece, monkeypatch):
    monkeypatch.setattr(bit_string, "PIECE", piece)
    counts, widths = np.array([3, 0, 1, 4, 2]), np.array([5, 9, 20, 0, 1])
    width = np.repeat(widths, counts)
    numbers = np.random.default_rng(1).integers(0, 2**20, 10) & ((1 << width) - 1)
    string = BitString(packed(to_planes(numbers, width)))
    found, owner = [], []
    for start, stop, own, part in by_planes(string, counts, widths):
        assert start == len(found)
        assert stop - start == len(part) <= piece
        found += part.tolist()
        owner += own.tolist()
    assert found == numbers.tolist()
    assert owner == np.repeat(np.arange(5), counts).tolist()


def test_planes_that_the_bits_cannot_hold_are_refused_before_the_first_piece():
    with pytest.raises(PacketError) as error:
        by_planes(BitString(b"\xff"), np.array([5]), np.array([2]))
    assert str(error.value) == (
        "packet: expected 5 more bits, got 3; the packet is damaged, or another codec wrote it"
    )


def test_every_number_has_the_owner_that_counting_gives():
    counts = np.array([0, 2, 0, 5, 1, 0])
    of_all = np.repeat(np.arange(6), counts)
    for start in range(8):
        for stop in range(start + 1, 9):
            assert owners(np.cumsum(counts), start, stop).tolist() == of_all[start:stop].tolist()
