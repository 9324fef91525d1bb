"""The frame of a packet: header, covered layers and checksum (``docs/packet-format.md``).

Everything here is checked in order of cost, and nothing is allocated by a number from the packet.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from fedfreeze.errors import PacketError
from fedfreeze.layout import Layout

MAGIC = b"FZ"
VERSION = 2
MAX_PACKET_BYTES = 2**32 - 1
MAX_ROUND = 2**32 - 1

_HEADER = struct.Struct("<2sBB8sII")  # magic, version, kind, fingerprint, round, total bytes
_CRC = struct.Struct("<I")

EMPTY_PACKET_BYTES = _HEADER.size + _CRC.size
"""Size of the empty packet: a header and its checksum, no layer, no value."""

DAMAGED = "the packet is damaged, or another codec wrote it"


class Kind(IntEnum):
    """What follows the header."""

    EMPTY = 0
    SPARSE = 1
    SHARED = 2  # sparse over positions that both ends know
    DENSE32 = 3
    DENSE16 = 4
    DENSE8 = 5
    LITERAL = 6


@dataclass(frozen=True)
class Frame:
    """An opened packet: header fields and the bytes between layer bitmap and checksum."""

    kind: Kind
    round_number: int
    layers: tuple[str, ...]
    body: bytes | memoryview


def refusal(expected: str, came: str, fix: str = DAMAGED) -> PacketError:
    """The error for bytes that are not as they must be."""
    return PacketError(f"packet: expected {expected}, got {came}; {fix}")


def frame_bytes(layout: Layout) -> int:
    """Bytes of a frame around a body that is not empty: header, layer bitmap, checksum."""
    return EMPTY_PACKET_BYTES + (len(layout) + 7) // 8


def close(
    kind: Kind, layout: Layout, layers: Sequence[str], body: bytes, round_number: int
) -> bytes:
    """The finished packet.

    Raises:
        PacketError: the round does not fit 32 bits, or the packet would reach 4 GiB.
    """
    if not 0 <= round_number <= MAX_ROUND:
        raise refusal(f"a round from 0 to {MAX_ROUND}", str(round_number), "check the caller")
    total = EMPTY_PACKET_BYTES if kind is Kind.EMPTY else frame_bytes(layout) + len(body)
    if total > MAX_PACKET_BYTES:
        raise refusal(f"at most {MAX_PACKET_BYTES} bytes", str(total), "train fewer layers")
    fingerprint = bytes.fromhex(layout.fingerprint)
    parts = [_HEADER.pack(MAGIC, VERSION, kind, fingerprint, round_number, total)]
    if kind is not Kind.EMPTY:
        covered = np.isin(layout.names, layers)
        parts += [np.packbits(covered, bitorder="little").tobytes(), body]
    content = b"".join(parts)
    return content + _CRC.pack(zlib.crc32(content))


def open_packet(packet: bytes, layout: Layout, max_bytes: int) -> Frame:
    """The frame of bytes that arrived.

    Raises:
        PacketError: over ``max_bytes``, torn, damaged, of another version or of another model.
    """
    if not EMPTY_PACKET_BYTES <= len(packet) <= max_bytes:
        raise refusal(
            f"from {EMPTY_PACKET_BYTES} to {max_bytes} bytes",
            str(len(packet)),
            "the sender was given a larger budget, or the upload was cut",
        )
    magic, version, kind_number, fingerprint, round_number, total = _HEADER.unpack_from(packet)
    if magic != MAGIC:
        raise refusal(f"the magic {MAGIC!r}", repr(magic))
    if version != VERSION:
        raise refusal(f"version {VERSION}", str(version), "run the same release on both ends")
    if total != len(packet):
        raise refusal(f"the {total} bytes that its header states", str(len(packet)))
    content, stated = memoryview(packet)[: -_CRC.size], _CRC.unpack(packet[-_CRC.size :])[0]
    if zlib.crc32(content) != stated:
        raise refusal(f"the checksum {stated:08x}", f"{zlib.crc32(content):08x}")
    if fingerprint.hex() != layout.fingerprint:
        raise refusal(
            f"the layout {layout.fingerprint}",
            fingerprint.hex(),
            "the sender trains another model or another release of it",
        )
    if kind_number not in tuple(Kind):
        raise refusal(f"a kind from 0 to {max(Kind)}", str(kind_number))
    kind = Kind(kind_number)
    rest = content[_HEADER.size :]
    if kind is Kind.EMPTY:
        if rest:
            raise refusal("no bytes in an empty packet", str(len(rest)))
        return Frame(kind, round_number, (), b"")
    bitmap_bytes = frame_bytes(layout) - EMPTY_PACKET_BYTES
    if len(rest) < bitmap_bytes:
        raise refusal(f"{bitmap_bytes} bytes of layer bitmap", str(len(rest)))
    covered = np.unpackbits(np.frombuffer(rest[:bitmap_bytes], np.uint8), bitorder="little")
    if covered[len(layout) :].any() or not covered.any():
        raise refusal(
            f"a bitmap that covers some of {len(layout)} layers", rest[:bitmap_bytes].hex()
        )
    layers = tuple(
        name for name, is_covered in zip(layout.names, covered, strict=False) if is_covered
    )
    return Frame(kind, round_number, layers, rest[bitmap_bytes:])


def packet_digest(packet: bytes) -> str:
    """BLAKE2b of a packet, 32 hex digits: how both ends name it.

    >>> packet_digest(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(packet, digest_size=16).hexdigest()
