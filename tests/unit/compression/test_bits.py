import numpy as np
import pytest

from compression.bits import BitReader, from_unary, to_planes
from fedfreeze.errors import PacketError


def packed(bits):
    return np.packbits(bits, bitorder="little").tobytes()


def test_planes_hold_all_lowest_bits_first():
    bits = to_planes(np.array([0b101, 0b1, 0b10]), np.array([3, 1, 2]))
    assert bits.tolist() == [1, 1, 0, 0, 1, 1]


def test_planes_come_back_for_values_of_mixed_width():
    widths = np.array([0, 20, 3, 0, 7, 1])
    values = (1 << widths) - 1
    assert BitReader(packed(to_planes(values, widths))).planes(widths).tolist() == values.tolist()


def test_unary_numbers_end_in_a_one_each():
    bits = from_unary(np.array([3, 0, 1]))
    assert bits.tolist() == [0, 0, 0, 1, 1, 0, 1]
    assert BitReader(packed(bits)).unary(3).tolist() == [3, 0, 1]


def test_a_reader_refuses_to_run_past_its_end():
    with pytest.raises(PacketError) as error:
        BitReader(b"\x01").take(9)
    assert str(error.value) == (
        "packet: expected 9 more bits, got 8; the packet is damaged, or another codec wrote it"
    )


def test_a_whole_byte_of_padding_is_refused():
    with pytest.raises(PacketError) as error:
        BitReader(b"\x80\x00").unary(1)
    assert str(error.value) == (
        "packet: expected less than a byte of padding, got 8 bits; "
        "the packet is damaged, or another codec wrote it"
    )


def test_a_one_in_the_padding_is_refused():
    with pytest.raises(PacketError) as error:
        BitReader(b"\x03").unary(1)
    assert str(error.value) == (
        "packet: expected 1 unary numbers, got 2; the packet is damaged, or another codec wrote it"
    )
