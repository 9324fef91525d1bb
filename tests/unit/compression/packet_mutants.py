"""Packets with a few bytes changed in ways that their structure suggests."""

import struct
import zlib


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
