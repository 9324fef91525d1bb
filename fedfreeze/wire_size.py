"""How many bytes a message is when Flower has serialised it."""

from __future__ import annotations

from flwr.app import Message, RecordDict
from flwr.common.constant import FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects


def wire_bytes(message: Message) -> int:
    """Length of every object that Flower sends for ``message``, headers included.

    It counts objects as they are handed to Flower; TLS, HTTP and polling come on top and are known
    only to the operating system.
    """
    return sum(len(part.deflate()) for part in get_all_nested_objects(message).values())


# The message object around a content: node ids, run id, times. Node ids are random numbers, and
# their encoded length with them, so plans are made with this many bytes instead of the true ones,
# which are fewer.
MESSAGE_BYTES = 256

# An object of Flower's for each chunk of an array: its head, its digest and its number.
_CHUNK_BYTES = 128


def planned_bytes(content: RecordDict) -> int:
    """As :func:`wire_bytes` but for the message object, which stands in with a constant.

    Two runs with the same seed plan with the same number of bytes.
    """
    parts = get_all_nested_objects(content).values()
    return sum(len(part.deflate()) for part in parts) + MESSAGE_BYTES


def size_bytes(length: int) -> int:
    """What a packed array of ``length`` bytes weighs beside them, above one of a single byte.

    At most: its length is written twice in decimal digits, and it is sent in chunks.

    >>> size_bytes(1), size_bytes(1_000)
    (0, 6)
    """
    chunks = -(-length // FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE)
    return 2 * (len(str(length)) - 1) + _CHUNK_BYTES * max(0, chunks - 1)
