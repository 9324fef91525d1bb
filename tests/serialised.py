"""The length of a Flower message, worked out from its protobufs.

Flower sends a message as a tree of objects: ``KIND CHILDREN LENGTH``, a zero byte, and a body of
``LENGTH`` bytes; children are named by SHA-256 in hexadecimal, with commas between. This knows none
of the project's code, nor Flower's own ``deflate``.
"""

from __future__ import annotations

import json

from flwr.app import ConfigRecord
from flwr.common.serde import config_record_to_proto, message_to_proto

_DIGEST = "0" * 64


def message_bytes(message):
    """Of all its objects, heads included."""
    proto = message_to_proto(message)
    proto.ClearField("content")
    proto.metadata.ClearField("message_id")  # the receiver knows it as the digest of the object
    content = message.content
    return (
        _object("Message", 1, proto.SerializeToString())
        + _object("RecordDict", len(content), _json(dict.fromkeys(content, _DIGEST)))
        + sum(_record_bytes(record) for record in content.values())
    )


def _record_bytes(record):
    if isinstance(record, ConfigRecord):
        return _object("ConfigRecord", 0, config_record_to_proto(record).SerializeToString())
    references = _json(dict.fromkeys(record, _DIGEST))
    return _object("ArrayRecord", len(record), references) + sum(map(_array_bytes, record.values()))


def _array_bytes(array):
    """One chunk of data, or none; the tests' models are far smaller than Flower's chunks."""
    chunks = 1 if array.data else 0
    described = _json(
        {
            "dtype": array.dtype,
            "shape": array.shape,
            "stype": array.stype,
            "arraychunk_ids": [0] * chunks,
        }
    )
    data = _object("ArrayChunk", 0, array.data) if chunks else 0
    return _object("Array", chunks, described) + data


def _object(kind, children, body):
    head = f"{kind} {','.join([_DIGEST] * children)} {len(body)}"
    return len(head) + 1 + len(body)


def _json(value):
    return json.dumps(value).encode()
