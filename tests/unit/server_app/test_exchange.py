"""Sending and collecting: blocked pulls, errors, late replies, messages that were not taken."""

import threading

import pytest
from flwr.app import Error, Message, MessageType, RecordDict

from fedfreeze.errors import RunError
from fedfreeze.wall_clock import SystemClock
from server_app.exchange import Exchange
from tests.grid import FIRST_NODE, InProcessGrid

SUPERLINK = 1
SHORT_S = 0.05
LONG_S = 60.0  # nothing here waits that long


def echo(message, context):
    return Message(RecordDict(), reply_to=message)


def exchange():
    return Exchange(SystemClock(), poll_s=0.001)


def orders(count):
    return [
        Message(RecordDict(), FIRST_NODE + index, MessageType.TRAIN, ttl=60.0)
        for index in range(count)
    ]


def grid_of(nodes, **kwargs):
    return InProcessGrid(echo, nodes, **kwargs)


def nodes_of(replies):
    return sorted(reply.metadata.src_node_id - FIRST_NODE for reply in replies)


def test_every_reply_is_collected_once():
    good, failed = exchange()(grid_of(3), orders(3), LONG_S)
    assert (nodes_of(good), failed) == ([0, 1, 2], {})


def test_nothing_to_send_is_nothing_to_wait_for():
    assert exchange()(grid_of(1), [], LONG_S) == ([], {})


class InParts(InProcessGrid):
    """Each pull gives at most one reply, and every second pull none."""

    pulls = 0

    def pull_messages(self, message_ids):
        self.pulls += 1
        return super().pull_messages(list(message_ids)[:1]) if self.pulls % 2 else []


def test_replies_that_come_one_by_one_are_all_collected():
    good, failed = exchange()(InParts(echo, 3), orders(3), LONG_S)
    assert (nodes_of(good), failed) == ([0, 1, 2], {})


class Blocking(InProcessGrid):
    """The first pull gives what is there; the next one hangs, as on a slow upload."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.pulls = 0
        self.released = threading.Event()
        self.let_go = threading.Event()

    def pull_messages(self, message_ids):
        self.pulls += 1
        if self.pulls > 1:
            self.released.wait(LONG_S)
        found = super().pull_messages(message_ids)
        if self.pulls > 1:
            self.let_go.set()
        return found


def test_a_pull_that_blocks_keeps_nobody_waiting_beyond_the_timeout():
    lost = FIRST_NODE + 1
    grid = Blocking(
        echo, 3, on_reply=lambda reply: None if reply.metadata.src_node_id == lost else reply
    )
    good, failed = exchange()(grid, orders(3), SHORT_S)
    assert nodes_of(good) == [0, 2]
    assert failed == {lost: "no reply within 0.05 s"}
    grid.released.set()
    assert grid.let_go.wait(LONG_S)


def test_a_late_reply_of_an_earlier_call_is_not_taken_for_one_of_this_call():
    """Round 1's order to node 0 times out; its reply is there when round 2 pulls."""
    held = {}

    def hold_first(reply):
        if not held:
            held["reply"] = reply
            return None
        return reply

    grid = grid_of(1, on_reply=hold_first)
    call = exchange()
    good, failed = call(grid, orders(1), SHORT_S)
    assert (good, failed) == ([], {FIRST_NODE: "no reply within 0.05 s"})
    late = held["reply"]
    grid._replies[late.metadata.reply_to_message_id] = late
    (second,), failed = call(grid, orders(1), LONG_S)
    assert failed == {}
    assert second.metadata.reply_to_message_id != late.metadata.reply_to_message_id


class Foreign(InProcessGrid):
    """Every pull also gives a reply that nobody asked for."""

    def pull_messages(self, message_ids):
        replies = super().pull_messages(message_ids)
        foreign = Message(RecordDict(), FIRST_NODE, MessageType.TRAIN)
        foreign.metadata.__dict__["_reply_to_message_id"] = "somebody else's"
        return [foreign, *replies]


def test_a_reply_to_a_message_that_was_never_sent_is_passed_over():
    good, failed = exchange()(Foreign(echo, 2), orders(2), LONG_S)
    assert (nodes_of(good), failed) == ([0, 1], {})


def refusing(code, reason, from_superlink=True):
    """Node 1 gets no reply of its own: the SuperLink answers for it, under its own node id."""

    def replace(reply):
        if reply.metadata.src_node_id != FIRST_NODE + 1:
            return reply
        error = Message(Error(code, reason), reply_to=reply)
        error.metadata.__dict__["_reply_to_message_id"] = reply.metadata.reply_to_message_id
        error.metadata.__dict__["_src_node_id"] = SUPERLINK
        return error

    return replace


def test_an_error_of_the_superlink_is_put_down_to_the_node_it_stands_for():
    grid = grid_of(3, on_reply=refusing(3, "Node Unavailable"))
    good, failed = exchange()(grid, orders(3), LONG_S)
    assert nodes_of(good) == [0, 2]
    assert failed == {FIRST_NODE + 1: "code 3: Node Unavailable"}


@pytest.mark.parametrize(
    ("reason", "kept"), [("", "no reason given"), ("x" * 600 + "y", "x" * 499 + "y")]
)
def test_of_a_reason_the_end_is_kept(reason, kept):
    grid = grid_of(2, on_reply=refusing(2, reason))
    assert exchange()(grid, orders(2), LONG_S)[1] == {FIRST_NODE + 1: f"code 2: {kept}"}


def test_a_dead_worker_ends_the_run_because_ray_would_fail_every_later_message():
    grid = grid_of(3, on_reply=refusing(0, "The actor died"))
    with pytest.raises(RunError) as caught:
        exchange()(grid, orders(3), LONG_S)
    assert str(caught.value) == (
        "a simulation worker died (code 0: The actor died); the machine may be out of memory: use "
        "fewer workers, then go on with --resume"
    )


def pullers():
    return [thread for thread in threading.enumerate() if thread.name == "fedfreeze-pull"]


def test_no_thread_goes_on_pulling_after_a_run_has_ended():
    """Node 0 never answers, so only being told to stop ends the thread."""
    dead = refusing(0, "died")
    grid = grid_of(2, on_reply=lambda r: dead(r) if r.metadata.src_node_id != FIRST_NODE else None)
    before = set(pullers())
    with pytest.raises(RunError):
        exchange()(grid, orders(2), LONG_S)
    for thread in set(pullers()) - before:
        thread.join(LONG_S)
        assert not thread.is_alive()


class Broken(InProcessGrid):
    def pull_messages(self, message_ids):
        raise ConnectionError("the SuperLink is gone")


def test_an_exception_in_a_pull_reaches_the_caller():
    with pytest.raises(ConnectionError) as caught:
        exchange()(Broken(echo, 1), orders(1), LONG_S)
    assert str(caught.value) == "the SuperLink is gone"


NOT_TAKEN = "the order was not taken; the node has left, or the order is too large"


class Left(InProcessGrid):
    """Node 1 has left: Flower gives None for its message, or (in a simulation) leaves it out."""

    def __init__(self, *args, placeholder, **kwargs):
        super().__init__(*args, **kwargs)
        self.placeholder = placeholder

    def push_messages(self, messages):
        ids = []
        for message in messages:
            if message.metadata.dst_node_id != FIRST_NODE + 1:
                ids += super().push_messages([message])
            else:
                ids += self.placeholder
        return ids


@pytest.mark.parametrize("placeholder", [[None], [""], []])
def test_a_node_that_has_left_fails_alone(placeholder):
    good, failed = exchange()(Left(echo, 3, placeholder=placeholder), orders(3), LONG_S)
    assert nodes_of(good) == [0, 2]
    assert failed == {FIRST_NODE + 1: NOT_TAKEN}


class TooLarge(InProcessGrid):
    def push_messages(self, messages):
        return []


def test_when_no_message_is_taken_every_node_fails_at_once():
    assert exchange()(TooLarge(echo, 2), orders(2), LONG_S) == (
        [],
        {FIRST_NODE: NOT_TAKEN, FIRST_NODE + 1: NOT_TAKEN},
    )
