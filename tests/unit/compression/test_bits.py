import numpy as np

from compression.bits import bit_length, from_unary, to_planes


def test_planes_hold_all_lowest_bits_first():
    bits = to_planes(np.array([0b101, 0b1, 0b10]), np.array([3, 1, 2]))
    assert bits.tolist() == [1, 1, 0, 0, 1, 1]


def test_unary_numbers_end_in_a_one_each():
    assert from_unary(np.array([3, 0, 1])).tolist() == [0, 0, 0, 1, 1, 0, 1]


def test_bit_lengths_are_those_of_python():
    values = [0, *(2**power + off for power in range(1, 52) for off in (-1, 0, 1))]
    assert bit_length(np.array(values)).tolist() == [value.bit_length() for value in values]
