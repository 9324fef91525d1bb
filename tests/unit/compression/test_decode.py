import struct
import zlib

import numpy as np
import pytest

from compression import CodecSettings, decode, encode, sparse
from compression.packet import Kind, close, open_packet
from compression.reader import Reader
from compression.segments import Segments
from compression.shared import flat_positions
from compression.sparse import Body
from fedfreeze.errors import PacketError
from tests.unit.compression.sample_layouts import heavy_update, line, mixed

DAMAGED = "; the packet is damaged, or another codec wrote it"
STEP = struct.pack("<f", 1.0)


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


def test_more_values_than_the_layer_has_are_refused():
    assert refused(STEP + b"\x0b") == f"packet: expected a count up to 10, got 11{DAMAGED}"


def test_more_values_than_the_bytes_can_hold_are_refused_before_memory_is_taken():
    # 2^30 values with no bit for a sign: a few bytes must not claim gigabytes.
    body = STEP + b"\x80\x80\x80\x80\x04" + b"\x40\x00\x00"
    assert refused(body, layout=line(2**30)) == (
        f"packet: expected at most 0 values in so few bytes, got {2**30}{DAMAGED}"
    )


def test_a_plane_with_more_members_than_the_one_before_is_refused():
    assert refused(STEP + b"\x02\x40\x00\x03\x00\xff") == (
        f"packet: expected a count up to 2, got 3{DAMAGED}"
    )


def test_a_count_in_more_bytes_than_needed_is_refused():
    assert refused(STEP + b"\x80\x00") == (
        f"packet: expected the shortest form of a count, got a longer one{DAMAGED}"
    )


def test_a_count_that_never_ends_is_refused():
    assert refused(STEP + b"\xff" * 9) == (
        f"packet: expected a count of at most 5 bytes, got a longer one{DAMAGED}"
    )


def test_a_body_that_ends_in_its_table_is_refused():
    assert refused(STEP + b"\x02\x40") == f"packet: expected 1 more bytes, got 0{DAMAGED}"


def test_a_tail_wider_than_any_encoder_writes_is_refused():
    assert refused(STEP + b"\x01\x40\x00" + b"\x01" * 16 + b"\x15\xff\xff\xff\xff") == (
        f"packet: expected a tail width up to 20, got 21{DAMAGED}"
    )


def test_a_tail_width_with_a_spare_bit_is_refused():
    assert refused(STEP + b"\x01\x40\x00" + b"\x01" * 16 + b"\x03\x00\xff") == (
        f"packet: expected the smallest tail width, got a larger one{DAMAGED}"
    )


def test_bytes_after_a_sparse_body_are_refused():
    assert refused(STEP + b"\x00\x00") == (
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


def mutants(rng, packet, count):
    """Packets with a few bytes changed, cut, put in or swapped, whose frame still holds."""
    for _ in range(count):
        body = bytearray(packet[:-4])
        for _ in range(int(rng.integers(1, 4))):
            place = int(rng.integers(3, len(body)))
            choice = rng.integers(6)
            if choice == 0:
                body[place] ^= 1 << int(rng.integers(8))
            elif choice == 1:
                body[place] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
            elif choice == 2:
                del body[place : place + int(rng.integers(1, 9))]
            elif choice == 3:
                body[place:place] = rng.bytes(int(rng.integers(1, 9)))
            elif choice == 4:
                other = int(rng.integers(3, len(body)))
                body[place], body[other] = body[other], body[place]
            else:
                body[place : place + 4] = rng.bytes(4)
            body += b"\0" * max(0, 21 - len(body))
        body[4:12] = packet[4:12]
        body[16:20] = struct.pack("<I", len(body) + 4)
        yield bytes(body) + struct.pack("<I", zlib.crc32(body))


def written_again(packet, layout, positions):
    """The packet from what was read in it: there must be one way to write it."""
    frame = open_packet(packet, layout, len(packet))
    segments = Segments.of(layout, frame.layers)
    reader = Reader(frame.body)
    front = reader.take(4 * segments.buffer_count)
    if frame.kind in (Kind.SPARSE, Kind.SHARED):
        shared = None if positions is None else flat_positions(positions, segments)
        front += Body(sparse.parse(reader, segments, shared), segments, shared).pack()
    else:
        front += reader.rest()
    return close(frame.kind, layout, frame.layers, front, frame.round_number)


def samples():
    layout = mixed()
    mask = {"body.weight": np.arange(0, 3000, 31), "head.weight": np.arange(30)}
    for seed, settings, step, positions in [
        (0, CodecSettings(), None, None),
        (1, CodecSettings(), 0.001, None),  # many planes, and tails
        (2, CodecSettings(), None, mask),
        (3, CodecSettings("dense", 8), None, None),
        (4, CodecSettings("dense", 16), None, None),
    ]:
        sent = encode(
            heavy_update(layout, seed),
            layout,
            layout.names,
            budget_bytes=9000 if settings.mode == "dense" else 500,
            round_number=seed,
            settings=settings,
            step=step,
            positions=positions,
        )
        assert not sent.empty
        yield layout, sent.packet, positions


@pytest.mark.parametrize("sample", range(5))
def test_mutants_are_refused_or_are_packets_and_nothing_else_happens(sample):
    layout, packet, positions = list(samples())[sample]
    rng = np.random.default_rng(sample)
    outcomes = {"refused": 0, "read": 0}
    for mutant in mutants(rng, packet, 600):
        try:
            received = decode(mutant, layout, max_bytes=10_000, positions=positions)
        except PacketError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        assert received.layers == layout.ordered(received.layers)
        expected = {
            t.name: t.shape for name in received.layers for t in layout[name].tensors if t.is_float
        }
        assert {n: a.shape for n, a in received.update.items()} == expected
        for array in received.update.values():
            assert array.dtype == np.float32
            assert np.isfinite(array).all()
        assert written_again(mutant, layout, positions) == mutant
    # Both ways out were taken, so the mutants reach past the frame.
    assert min(outcomes.values()) > 10
