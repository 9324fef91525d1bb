import os
import struct

import numpy as np
import pytest

from compression import decode
from compression.packet import Kind, close
from fedfreeze.errors import PacketError
from fedfreeze.layout import Layer, Layout, TensorSpec
from tests.unit.compression import reference_decoder
from tests.unit.compression.golden_packets import GOLDEN
from tests.unit.compression.packet_mutants import mutants
from tests.unit.compression.sample_layouts import line, mixed

# `make fuzz` asks for many more.
MUTANTS = int(os.environ.get("FEDFREEZE_MUTANTS", "5000"))

DAMAGED = "; the packet is damaged, or another codec wrote it"
STEP = struct.pack("<f", 1.0)
# A step, and that the one tensor is a unit.
HEAD = STEP + b"\0"


def refused(body, kind=Kind.SPARSE, layout=None):
    """The message for a well-framed packet with this body; by default one layer of ten values."""
    layout = layout or line(10)
    packet = close(kind, layout, layout.names, body, 0)
    with pytest.raises(PacketError) as error:
        decode(packet, layout, max_bytes=10_000)
    return str(error.value)


@pytest.mark.parametrize("step", [0.0, -1.0, 1e-40, float("inf"), float("nan")])
def test_a_step_that_is_not_positive_finite_and_normal_is_refused(step):
    came = struct.unpack("<f", struct.pack("<f", step))[0]
    assert refused(struct.pack("<f", step) + b"\0") == (
        f"packet: expected a step or scale that is finite, positive and normal, got {came!r}"
        f"{DAMAGED}"
    )


def test_more_values_than_the_unit_has_are_refused():
    assert refused(HEAD + b"\x0b") == f"packet: expected a count up to 10, got 11{DAMAGED}"


def test_more_values_than_the_bytes_can_hold_are_refused_before_memory_is_taken():
    # 2^30 values with no bit for a sign: a few bytes must not claim gigabytes.
    body = HEAD + b"\x80\x80\x80\x80\x04" + b"\0\x40\x00\x00"
    assert refused(body, layout=line(2**30)) == (
        f"packet: expected at most 0 signs in so few bytes, got {2**30}{DAMAGED}"
    )


def test_a_first_tensor_that_goes_on_with_none_is_refused():
    assert refused(STEP + b"\x01\x00") == (
        f"packet: expected which of 1 tensors go on with the one before, got 01{DAMAGED}"
    )


def test_tensors_that_do_not_exist_cannot_be_joined():
    assert refused(STEP + b"\x02\x00") == (
        f"packet: expected which of 1 tensors go on with the one before, got 02{DAMAGED}"
    )


def test_a_plane_with_more_members_than_the_one_before_is_refused():
    assert refused(HEAD + b"\x02\x00\x40\x00\x03\x00\xff") == (
        f"packet: expected a count up to 2, got 3{DAMAGED}"
    )


def test_a_count_in_more_bytes_than_needed_is_refused():
    assert refused(HEAD + b"\x80\x00") == (
        f"packet: expected the shortest form of a count, got a longer one{DAMAGED}"
    )


def test_a_count_that_never_ends_is_refused():
    assert refused(HEAD + b"\xff" * 9) == (
        f"packet: expected a count of at most 5 bytes, got a longer one{DAMAGED}"
    )


def test_a_body_that_ends_in_its_table_is_refused():
    assert refused(HEAD + b"\x02\x00\x40") == f"packet: expected 1 more bytes, got 0{DAMAGED}"


def test_a_tail_wider_than_any_encoder_writes_is_refused():
    assert refused(HEAD + b"\x01\x00\x40\x00" + b"\x01" * 16 + b"\x15\xff\xff\xff\xff") == (
        f"packet: expected a tail width up to 20, got 21{DAMAGED}"
    )


def test_a_tail_width_with_a_spare_bit_is_refused():
    assert refused(HEAD + b"\x01\x00\x40\x00" + b"\x01" * 16 + b"\x03\x00\xff") == (
        f"packet: expected the smallest tail width, got a larger one{DAMAGED}"
    )


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (1, "a vector has no rows"),
        (2, "nor columns"),
        (24, "one gain and many exclude each other"),
        (32, "no such flag"),
    ],
)
def test_flags_that_do_not_suit_a_vector_are_refused(flags, why):
    body = HEAD + b"\x01" + bytes([flags]) + b"\x40\x00\x00\xff"
    assert refused(body) == (
        f"packet: expected flags that suit the unit, got {flags:#04x}{DAMAGED}"
    ), why


@pytest.mark.parametrize("gain", [0, 8, 255])
def test_a_gain_that_no_encoder_writes_is_refused(gain):
    assert refused(HEAD + b"\x01\x08\x40\x00" + bytes([gain]) + b"\x00\xff") == (
        f"packet: expected a gain from 1 to 7, got {gain}{DAMAGED}"
    )


def test_a_zero_point_that_is_not_finite_is_refused():
    assert refused(HEAD + b"\x01\x04" + struct.pack("<f", float("inf")) + b"\x00\x00") == (
        f"packet: expected finite values, got a NaN or an infinity{DAMAGED}"
    )


def grid(rows, columns):
    return Layout("grid", (Layer("all", (TensorSpec("w", (rows, columns), "float32"),)),))


def test_more_classes_than_the_shape_allows_are_refused():
    # 40 rows of 30: 15 groups would need a table of 600 numbers for 1,200 values.
    levels = bytes([40] * 15) + b"\0"
    body = HEAD + b"\x28\x01\x40\x00\x00" + levels + b"\x00" + b"\0" * 40
    assert refused(body, layout=grid(40, 30)) == (
        f"packet: expected fewer classes for a tensor of this shape, got 15{DAMAGED}"
    )


def test_a_class_above_the_largest_is_refused():
    levels = bytes([40] * 16)
    body = HEAD + b"\x28\x01\x40\x00\x00" + levels + b"\0" * 40
    assert refused(body, layout=grid(40, 3000)) == (
        f"packet: expected at most 15 planes, got more{DAMAGED}"
    )


def test_values_that_no_group_can_hold_are_refused():
    # Two kept values, and all rows of class 0.
    body = HEAD + b"\x02\x01\x40\x00\x00" + b"\x00" + b"\x00" + b"\0" * 8
    assert refused(body, layout=grid(40, 300)) == (
        f"packet: expected at most 0 values in the last group, got 2{DAMAGED}"
    )


def test_bytes_after_a_sparse_body_are_refused():
    assert refused(HEAD + b"\x00\x00") == (
        f"packet: expected less than a byte of padding, got 8 bits{DAMAGED}"
    )


def test_bytes_after_a_dense_body_are_refused():
    assert refused(b"\0" * 41, Kind.DENSE32) == (
        f"packet: expected the end of the body, got 1 more bytes{DAMAGED}"
    )


def test_a_dense_body_that_is_too_short_is_refused():
    assert refused(b"\0" * 39, Kind.DENSE32) == (f"packet: expected 40 more bytes, got 39{DAMAGED}")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_dense_values_that_are_not_finite_are_refused(bad):
    body = struct.pack("<10f", *([0.0] * 9), bad)
    assert refused(body, Kind.DENSE32) == (
        f"packet: expected finite values, got a NaN or an infinity{DAMAGED}"
    )


def test_buffers_that_are_not_finite_are_refused():
    body = struct.pack("<8f", *([0.0] * 7), float("nan"))
    assert refused(body, layout=mixed()) == (
        f"packet: expected finite values, got a NaN or an infinity{DAMAGED}"
    )


@pytest.mark.parametrize(("scale", "first"), [(0.0, 1), (-1.0, 1), (1.0, 0), (1e-40, 1)])
def test_a_scale_that_does_not_fit_its_integers_is_refused(scale, first):
    body = struct.pack("<f10b", scale, first, *([0] * 9))
    came = struct.unpack("<f", struct.pack("<f", scale))[0]
    assert refused(body, Kind.DENSE8) == (
        f"packet: expected a positive scale, or 0 for a tensor of zeros, got {came!r}{DAMAGED}"
    )


def test_the_integer_that_has_no_opposite_is_refused():
    assert refused(struct.pack("<f10b", 1.0, -128, *([0] * 9)), Kind.DENSE8) == (
        f"packet: expected integers from -127, got -128{DAMAGED}"
    )


@pytest.mark.parametrize("name", GOLDEN)
def test_mutants_are_refused_or_are_packets_and_nothing_else_happens(name):
    layout, packet, positions = GOLDEN[name]()
    rng = np.random.default_rng(sorted(GOLDEN).index(name))
    outcomes = {"refused": 0, "read": 0}
    for mutant in mutants(rng, packet, MUTANTS // len(GOLDEN)):
        try:
            received = decode(mutant, layout, max_bytes=len(mutant), positions=positions)
        except PacketError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        layers, _, expected = reference_decoder.decode(mutant, layout, positions)
        assert received.layers == layers
        for tensor, array in received.update.items():
            assert np.isfinite(array).all()
            assert array.dtype == np.float32
            assert array.shape == layout.tensors[tensor].shape
            same = np.array(expected[tensor], np.float32).reshape(array.shape)
            assert array.tobytes() == same.tobytes()
    # Both ways out were taken, so the mutants reach past the frame.
    assert min(outcomes.values()) > 0
