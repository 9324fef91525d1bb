import struct
import zlib

import numpy as np
import pytest

from compression import EMPTY_PACKET_BYTES, decode, encode, packet_digest
from fedfreeze.errors import PacketError
from tests.unit.compression.sample_layouts import heavy_update, line, mixed

DAMAGED = "; the packet is damaged, or another codec wrote it"

# Step 0.5, layer "all" of ten values: 1.0 at 2, -2.25 at 3, 0.6 at 9. The bytes must be the same
# on every platform and for as long as the version is 1.
GOLDEN_UPDATE = np.float32([0, 0, 1.0, -2.25, 0, 0.1, 0, 0, 0, 0.6])
GOLDEN = "465a01019a816d2a355135410201000027000000010000003f03316f02010100225301cffb47f0"


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


def golden():
    layout = line(10)
    return layout, encode(
        {"w": GOLDEN_UPDATE}, layout, ["all"], budget_bytes=99, round_number=258, step=0.5
    )


def test_the_golden_packet_is_written_byte_for_byte():
    assert golden()[1].packet.hex() == GOLDEN


def test_the_golden_packet_is_read_value_for_value():
    layout = line(10)
    received = decode(bytes.fromhex(GOLDEN), layout, max_bytes=99)
    assert (received.layers, received.round_number) == (("all",), 258)
    assert np.flatnonzero(received.update["w"]).tolist() == [2, 3, 9]
    # Dead zone 49/64 and offset 111/256: cells 1, 3 and 0 of step 1/2.
    assert received.update["w"][[2, 3, 9]].tolist() == [
        (49 / 64 + 1.5) / 2,
        -(49 / 64 + 3.5) / 2,
        (49 / 64 + 111 / 256) / 2,
    ]


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
    assert refused(packet[:2] + b"\x02" + packet[3:], layout) == (
        "packet: expected version 1, got 2; run the same release on both ends"
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
    assert refused(signed(packet[:3] + b"\x06" + packet[4:-4]), layout) == (
        f"packet: expected a kind from 0 to 5, got 6{DAMAGED}"
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
