"""How many bytes a message is when Flower has serialised it."""

from __future__ import annotations

from flwr.app import Message, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects


def wire_bytes(message: Message) -> int:
    """Length of every object that Flower sends for ``message``, headers included.

    It counts objects as they are handed to Flower; TLS, HTTP and polling come on top and are known
    only to the operating system.
    """
    return sum(len(part.deflate()) for part in get_all_nested_objects(message).values())


# The message object around a content: node ids, run id, times. Node ids are random numbers, and
# their encoded length with them, so plans are made with this many bytes instead of the true ones.
MESSAGE_BYTES = 192


def planned_bytes(content: RecordDict) -> int:
    """As :func:`wire_bytes` but for the message object, which stands in with a constant.

    Two runs with the same seed plan with the same number of bytes.
    """
    parts = get_all_nested_objects(content).values()
    return sum(len(part.deflate()) for part in parts) + MESSAGE_BYTES
