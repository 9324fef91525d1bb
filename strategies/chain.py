"""The packets of the latest versions of the published model, on both ends.

Version v - 1 becomes v by exactly one packet, whose round number is v. A client that holds version
h is sent the packets of h + 1, h + 2, ... in that order, each behind its length (u32,
little-endian).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from compression import decode
from fedfreeze.errors import ProtocolError
from fedfreeze.layout import Arrays, Layout
from strategies.downlink import added

# Each packet costs a client one pass over its model, however few bytes it has.
MOST_PACKETS = 100

_LENGTH = struct.Struct("<I")


class Chain:
    """The packets that some client may still be sent.

    Args:
        most_bytes: of all of them together; a client that lacks more is better off with the dense
            model, so the oldest are dropped.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._packets: dict[int, bytes] = {}

    def append(self, version: int, packet: bytes) -> None:
        """Keep the packet that leads to ``version``; the one before it leads to the version before.

        >>> chain = Chain(most_bytes=12)
        >>> for version in (1, 2, 3):
        ...     chain.append(version, bytes(2))
        >>> sorted(chain.packets)
        [2, 3]
        """
        self._packets[version] = packet
        while len(self._packets) > MOST_PACKETS or self._joined_bytes() > self._most_bytes:
            del self._packets[min(self._packets)]

    @property
    def packets(self) -> Mapping[int, bytes]:
        """By the version that each leads to."""
        return self._packets

    def since(self, held: int, version: int) -> tuple[bytes, ...] | None:
        """What leads from version ``held`` to ``version``; None where not all of it is there."""
        wanted = range(held + 1, version + 1)
        if held > version or any(number not in self._packets for number in wanted):
            return None
        return tuple(self._packets[number] for number in wanted)

    def _joined_bytes(self) -> int:
        return sum(_LENGTH.size + len(packet) for packet in self._packets.values())


def joined(packets: Sequence[bytes]) -> bytes:
    """Packets as they travel.

    >>> joined([b"ab", b""]).hex(" ")
    '02 00 00 00 61 62 00 00 00 00'
    """
    return b"".join(part for packet in packets for part in (_LENGTH.pack(len(packet)), packet))


def parted(data: bytes, count: int, *, max_bytes: int) -> list[bytes]:
    """The inverse of :func:`joined`, for bytes that arrived.

    Args:
        data: what came.
        count: how many packets must be in it.
        max_bytes: the longest that one of them may be.

    Raises:
        ProtocolError: other than exactly ``count`` packets, or one is too long.
    """
    if not 0 < count <= MOST_PACKETS:
        raise ProtocolError(
            f"expected from 1 to {MOST_PACKETS} packets to reach the server's version, got {count}"
        )
    packets, at = [], 0
    for number in range(1, count + 1):
        begin = at + _LENGTH.size
        if begin > len(data):
            raise ProtocolError(f"expected {count} packets of the model, got {number - 1}")
        (length,) = _LENGTH.unpack_from(data, at)
        if length > max_bytes:
            raise ProtocolError(
                f"packet {number} of {count} of the model: expected at most {max_bytes} bytes, "
                f"its length says {length}"
            )
        at = begin + length
        if at > len(data):
            raise ProtocolError(
                f"packet {number} of {count} of the model: expected {length} bytes, "
                f"got {len(data) - begin}"
            )
        packets.append(data[begin:at])
    if at < len(data):
        raise ProtocolError(
            f"expected {count} packets of the model, got {len(data) - at} bytes behind them"
        )
    return packets


def caught_up(
    model: Arrays,
    packets: Sequence[bytes],
    held: int,
    layout: Layout,
    *,
    max_bytes: int,
) -> dict[str, np.ndarray]:
    """The model of version ``held`` after the packets that lead on from it; ``model`` stays.

    Raises:
        PacketError: one of them is not a packet of this layout and size.
        ProtocolError: one belongs to another version, or leads out of the finite numbers.
        LayoutError: ``model`` is not the layout's.
    """
    layout.check(model)
    arrays = dict(model)
    for version, packet in enumerate(packets, start=held + 1):
        decoded = decode(packet, layout, max_bytes=max_bytes)
        if decoded.round_number != version:
            raise ProtocolError(
                f"expected the packet of version {version} of the model, "
                f"got that of version {decoded.round_number}"
            )
        for name, change in decoded.update.items():
            arrays[name] = added(arrays[name], change)
            if not np.isfinite(arrays[name]).all():
                raise ProtocolError(
                    f"the packet of version {version} takes {name!r} out of the finite numbers"
                )
    return arrays
