"""How many bytes a message is when Flower has serialised it."""

from __future__ import annotations

from flwr.app import RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects


def wire_bytes(content: RecordDict) -> int:
    """Length of every object that Flower sends for ``content``, headers included.

    It counts objects as they are handed to Flower; TLS, HTTP and polling come on top and are known
    only to the operating system.
    """
    return sum(len(part.deflate()) for part in get_all_nested_objects(content).values())
