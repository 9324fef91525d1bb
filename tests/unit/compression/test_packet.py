import struct
import zlib

import numpy as np
import pytest

from compression import EMPTY_PACKET_BYTES, decode, encode, packet_digest
from fedfreeze.errors import PacketError
from tests.unit.compression import reference_decoder
from tests.unit.compression.golden_packets import GOLDEN, write
from tests.unit.compression.reference_decoder import flags_of
from tests.unit.compression.sample_layouts import heavy_update, line, mixed

DAMAGED = "; the packet is damaged, or another codec wrote it"


def signed(content):
    """Bytes with a length and a checksum that hold."""
    content = content[:16] + struct.pack("<I", len(content) + 4) + content[20:]
    return content + struct.pack("<I", zlib.crc32(content))


def refused(packet, layout, max_bytes=10_000):
    with pytest.raises(PacketError) as error:
        decode(packet, layout, max_bytes=max_bytes)
    return str(error.value)


@pytest.fixture
def layout():
    return mixed()


@pytest.fixture
def packet(layout):
    update = heavy_update(layout, 0)
    return encode(update, layout, ["stem", "body"], budget_bytes=400, round_number=9).packet


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_packets_are_written_byte_for_byte(name):
    assert write(name).hex() == GOLDEN[name]()[1].hex()


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_packets_are_read_value_for_value(name):
    layout, packet, positions = GOLDEN[name]()
    received = decode(packet, layout, max_bytes=len(packet), positions=positions)
    layers, round_number, expected = reference_decoder.decode(packet, layout, positions)
    assert (received.layers, received.round_number) == (layers, round_number)
    assert set(received.update) == set(expected)
    for tensor, array in received.update.items():
        assert array.tobytes() == np.array(expected[tensor], np.float32).tobytes()


def golden_flags(name):
    layout, packet, positions = GOLDEN[name]()
    return flags_of(packet, layout, positions)


def test_golden_packets_show_every_flag():
    found = {f for name in ("classes", "gain", "row gains", "affine") for f in golden_flags(name)}
    assert {flag for flag in (1, 2, 4, 8, 16) if any(f & flag for f in found)} == {1, 2, 4, 8, 16}


def test_the_empty_packet_has_the_stated_size_and_covers_no_layer(layout):
    sent = encode(heavy_update(layout, 0), layout, ["body"], budget_bytes=0, round_number=5)
    assert len(sent.packet) == EMPTY_PACKET_BYTES == 24
    received = decode(sent.packet, layout, max_bytes=EMPTY_PACKET_BYTES)
    assert (received.update, received.layers, received.round_number) == ({}, (), 5)


def test_the_digest_is_32_hex_digits_and_tells_packets_apart(packet):
    other = packet[:-1] + bytes([packet[-1] ^ 1])
    assert packet_digest(packet) != packet_digest(other)
    assert int(packet_digest(packet), 16) < 2**128
    assert len(packet_digest(packet)) == 32


def test_a_packet_over_the_limit_is_refused_before_it_is_read(packet, layout):
    assert refused(packet, layout, max_bytes=100) == (
        f"packet: expected from 24 to 100 bytes, got {len(packet)}; "
        "the sender was given a larger budget, or the upload was cut"
    )


def test_a_packet_without_a_header_is_refused(layout):
    assert refused(b"FZ", layout) == (
        "packet: expected from 24 to 10000 bytes, got 2; "
        "the sender was given a larger budget, or the upload was cut"
    )


def test_other_magic_is_refused(packet, layout):
    assert refused(b"PK" + packet[2:], layout) == (
        f"packet: expected the magic b'FZ', got b'PK'{DAMAGED}"
    )


def test_another_version_is_refused(packet, layout):
    assert refused(packet[:2] + b"\x01" + packet[3:], layout) == (
        "packet: expected version 2, got 1; run the same release on both ends"
    )


def test_a_cut_packet_is_refused(packet, layout):
    assert refused(packet[:-9], layout) == (
        f"packet: expected the {len(packet)} bytes that its header states, "
        f"got {len(packet) - 9}{DAMAGED}"
    )


def test_trailing_bytes_are_refused(packet, layout):
    assert refused(packet + b"\0", layout) == (
        f"packet: expected the {len(packet)} bytes that its header states, "
        f"got {len(packet) + 1}{DAMAGED}"
    )


def test_every_flipped_bit_is_refused(packet, layout):
    for place in range(8 * len(packet)):
        flipped = bytearray(packet)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(PacketError):
            decode(bytes(flipped), layout, max_bytes=10_000)


def test_a_wrong_checksum_is_refused(packet, layout):
    right = zlib.crc32(packet[:-4])
    wrong = packet[:-4] + struct.pack("<I", right ^ 1)
    assert refused(wrong, layout) == (
        f"packet: expected the checksum {right ^ 1:08x}, got {right:08x}{DAMAGED}"
    )


def test_a_packet_of_another_model_is_refused(packet, layout):
    other = line(10)
    assert refused(packet, other) == (
        f"packet: expected the layout {other.fingerprint}, got {layout.fingerprint}; "
        "the sender trains another model or another release of it"
    )


def test_an_unknown_kind_is_refused(packet, layout):
    assert refused(signed(packet[:3] + b"\x07" + packet[4:-4]), layout) == (
        f"packet: expected a kind from 0 to 6, got 7{DAMAGED}"
    )


def test_an_empty_packet_with_a_body_is_refused(packet, layout):
    assert refused(signed(packet[:3] + b"\x00" + packet[4:21]), layout) == (
        f"packet: expected no bytes in an empty packet, got 1{DAMAGED}"
    )


@pytest.mark.parametrize("bitmap", ["00", "0f", "83"])
def test_a_bitmap_of_no_layer_or_of_unknown_ones_is_refused(packet, layout, bitmap):
    assert refused(signed(packet[:20] + bytes.fromhex(bitmap) + packet[21:-4]), layout) == (
        f"packet: expected a bitmap that covers some of 3 layers, got {bitmap}{DAMAGED}"
    )


def test_a_packet_that_ends_before_its_bitmap_is_refused(packet, layout):
    assert refused(signed(packet[:20]), layout) == (
        f"packet: expected 1 bytes of layer bitmap, got 0{DAMAGED}"
    )
