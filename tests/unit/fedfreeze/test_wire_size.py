"""Byte counts of Flower's serialised objects."""

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, RecordDict
from flwr.common.constant import FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE as CHUNK_BYTES

from fedfreeze.messages import packed
from fedfreeze.wire_size import MESSAGE_BYTES, planned_bytes, size_bytes, wire_bytes
from tests.grid import InProcessGrid, over_the_wire


def message(content, node=7):
    InProcessGrid(None, 0)  # gives this process a task identity, which messages ask for
    return Message(content, node, MessageType.TRAIN, ttl=60.0)


def content(size=1_000):
    return RecordDict({"x": ConfigRecord({"a": 1, "b": "text"}), "p": packed(b"\x01" * size, "f")})


def test_the_count_is_what_crosses_the_wire():
    sent = message(content())
    assert wire_bytes(sent) == over_the_wire(sent)[1]


def test_each_further_byte_of_a_packet_counts_once():
    assert wire_bytes(message(content(1_100))) - wire_bytes(message(content(1_000))) == 100


def test_what_stands_twice_in_a_message_is_sent_once():
    """Flower sends objects by their content."""
    array = Array(np.arange(5_000, dtype=np.float32))
    once = wire_bytes(message(RecordDict({"a": ArrayRecord({"x": array})})))
    twice = wire_bytes(message(RecordDict({"a": ArrayRecord({"x": array, "y": array})})))
    assert once < twice < once + 200


def test_planned_bytes_do_not_depend_on_random_node_ids_and_are_near_the_true_ones():
    true = {wire_bytes(message(content(), node)) for node in (7, 2**62)}
    assert len(true) == 2
    assert all(abs(planned_bytes(content()) - count) < MESSAGE_BYTES for count in true)


def test_planned_bytes_are_no_fewer_than_those_of_a_message_with_the_longest_ids():
    order = message(content(), 2**64 - 1)
    order.metadata.__dict__["_message_id"] = "f" * 64  # a digest, as Flower makes them
    reply = Message(content(), reply_to=order, ttl=600.0)
    for part in ("run_id", "src_node_id", "dst_node_id", "src_task_id", "dst_task_id"):
        reply.metadata.__dict__[f"_{part}"] = 2**64 - 1
    reply.metadata.__dict__["_group_id"] = "1000000"
    assert wire_bytes(reply) <= planned_bytes(content())


@pytest.mark.parametrize(
    "length", [1, 9, 10, 99_999, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5]
)
def test_the_length_of_an_array_weighs_what_is_said_or_less(length):
    """Its bytes differ from chunk to chunk, or Flower would send equal chunks once."""
    data = np.random.default_rng(0).bytes(length)
    one = planned_bytes(RecordDict({"p": packed(b"\0", "f")}))
    beside = planned_bytes(RecordDict({"p": packed(data, "f")})) - length
    assert (
        beside - (one - 1)
        <= size_bytes(length)
        <= beside - (one - 1) + 64 * (length // CHUNK_BYTES)
    )
