import dataclasses
import json

import pytest
from flwr.app import Message, RecordDict

from fedfreeze.code_digest import code_digest
from fedfreeze.condition import Condition
from fedfreeze.errors import FleetError
from fedfreeze.messages import ResourceReport
from fedfreeze.wall_clock import FakeClock
from strategies.clients import Clients
from strategies.enrolment import enrol, new_query, through_grid, wait_for_nodes
from tests.grid import FIRST_NODE, InProcessGrid
from tests.unit.strategies.fake_boards import FakeBoards
from tests.unit.strategies.samples import board, stack

LAYOUT = stack()


def asked(boards, nodes=3, clients=None, grid=None):
    clients = Clients() if clients is None else clients
    enrol(
        grid or InProcessGrid(boards.app(), nodes),
        clients,
        exchange=through_grid,
        query=new_query(1, "{}", "-", "-"),
        code_digest=code_digest(),
        timeout_s=1.0,
    )
    return clients


def refusal(boards, nodes=1):
    with pytest.raises(FleetError) as caught:
        asked(boards, nodes)
    return str(caught.value)


def test_every_node_that_answers_is_enrolled_with_what_it_says():
    clients = asked(FakeBoards(LAYOUT, examples={"b1": 77}))
    assert clients.online() == ["b0", "b1", "b2"]
    assert (clients["b1"].examples, clients["b1"].node_id) == (77, FIRST_NODE + 1)
    assert (clients["b1"].capacity, clients["b1"].profile) == (board(), "fake")


def test_a_node_that_is_known_is_not_asked_again():
    questions = []
    grid = InProcessGrid(FakeBoards(LAYOUT).app(), 3, on_order=questions.append)
    clients = asked(None, grid=grid)
    asked(None, clients=clients, grid=grid)
    assert len(questions) == 3


@pytest.mark.parametrize("reply_order", [list, lambda replies: replies[::-1]])
def test_of_two_nodes_with_one_device_id_the_same_is_left_out_in_any_order(reply_order, caplog):
    boards = FakeBoards(LAYOUT, names={0: "twin", 1: "twin"})
    clients = asked(boards, grid=InProcessGrid(boards.app(), 3, reply_order=reply_order))
    assert clients.online() == ["b2", "twin"]
    assert clients["twin"].node_id == FIRST_NODE
    assert caplog.messages == [
        (
            f'node {FIRST_NODE + 1} is left out: two nodes call themselves "twin"; give each its '
            "own device-id in --node-config"
        )
    ]


def test_a_node_that_runs_other_code_is_refused_with_both_digests_and_the_fix():
    assert refusal(FakeBoards(LAYOUT, digest="0123456789abcdef")) == (
        f"no client is there: node {FIRST_NODE}: expected code {code_digest()}, got "
        "'0123456789abcdef': the node runs another client_app than the server's app; install the "
        "same release there, and start the SuperLink in an empty folder"
    )


def test_a_node_without_examples_is_refused():
    assert refusal(FakeBoards(LAYOUT, examples={"b0": 0})) == (
        f'no client is there: node {FIRST_NODE}: "b0" has 0 examples; 1 is the least'
    )


def test_a_node_that_fails_is_left_out_with_its_reason(caplog):
    def fail_on_the_second(message):
        if message.metadata.dst_node_id == FIRST_NODE + 1:
            raise OSError("disk full")

    boards = FakeBoards(LAYOUT)
    clients = asked(boards, grid=InProcessGrid(boards.app(), 2, on_order=fail_on_the_second))
    assert clients.online() == ["b0"]
    assert caplog.messages == [f"node {FIRST_NODE + 1} is left out: code 2: OSError: disk full"]


def test_a_node_that_says_nothing_is_left_out():
    boards = FakeBoards(LAYOUT)
    with pytest.raises(FleetError) as caught:
        asked(boards, grid=InProcessGrid(boards.app(), 1, on_reply=lambda reply: None))
    assert str(caught.value) == f"no client is there: node {FIRST_NODE}: no reply"


def test_a_grid_without_nodes_says_so():
    assert refusal(FakeBoards(LAYOUT), nodes=0) == "no client is there: no node is online"


DEEP = "[" * 100_000
CAPACITY_FIELDS = (
    "a capacity has the fields flops_per_s, memory_bytes, uplink_bytes_per_s, downlink_bytes_per_s"
)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "protocol",
            2,
            (
                "expected protocol 1, got 2; install the same release of FedFreeze on the server "
                "and on every board"
            ),
        ),
        ("device_id", 5, "ResourceReport.device_id: expected str, got 5"),
        ("examples", True, "ResourceReport.examples: expected int, got True"),
        ("examples", float("nan"), "ResourceReport.examples: expected int, got nan"),
        ("capacity", "{", "capacity: expected JSON, got '{'"),
        ("capacity", DEEP, f"capacity: expected JSON, got '{'[' * 79}"),
        ("capacity", "[]", f"{CAPACITY_FIELDS}, got []"),
        ("capacity", "1" * 5000, f"{CAPACITY_FIELDS}, got inf"),
        ("capacity", "NaN", f"{CAPACITY_FIELDS}, got nan"),
        ("condition", "{", "condition: expected JSON, got '{'"),
        (
            "condition",
            '{"is_slowed": "no"}',
            "condition.is_slowed: expected true or false, got 'no'",
        ),
    ],
)
def test_a_hostile_introduction_is_refused_by_name(field, value, message):
    class Spoilt(FakeBoards):
        def _introduce(self, request, context):
            reply = super()._introduce(request, context)
            reply.content["report"][field] = value
            return reply

    assert refusal(Spoilt(LAYOUT)) == f"no client is there: node {FIRST_NODE}: {message}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1" * 4000, "a capacity must be finite and above 0, got inf"),
        ("NaN", "a capacity must be finite and above 0, got nan"),
        ("0", "a capacity must be finite and above 0, got 0.0"),
        ('"1"', "capacity.flops_per_s: expected a number, got '1'"),
    ],
)
def test_a_hostile_number_in_a_capacity_is_refused(value, message):
    text = json.dumps(board().to_json()).replace("1000000000.0", value, 1)

    class Spoilt(FakeBoards):
        def _introduce(self, request, context):
            report = ResourceReport.from_record(
                super()._introduce(request, context).content["report"]
            )
            record = dataclasses.replace(report, capacity=text).to_record()
            return Message(RecordDict({"report": record}), reply_to=request)

    assert refusal(Spoilt(LAYOUT)) == f"no client is there: node {FIRST_NODE}: {message}"


class Nodes:
    """A grid of which only the number of nodes is known: one count for each time it is asked."""

    def __init__(self, *counts):
        self.counts = list(counts)
        self.asked = 0

    def get_node_ids(self):
        self.asked += 1
        return range(self.counts.pop(0) if len(self.counts) > 1 else self.counts[0])


def waited(nodes, minimum=0, wanted=10):
    clock = FakeClock()
    online = wait_for_nodes(nodes, minimum=minimum, wanted=wanted, timeout_s=120.0, clock=clock)
    return online, clock.now()


def test_with_a_minimum_it_waits_for_that_many():
    assert waited(Nodes(0, 1, 1, 1, 1, 2), minimum=2) == (2, 2.5)


def test_without_a_minimum_it_goes_on_as_soon_as_all_that_are_wanted_are_there():
    assert waited(Nodes(4, 10)) == (10, 0.5)


def test_without_a_minimum_it_goes_on_with_fewer_when_no_more_come():
    assert waited(Nodes(0, 0, 3, 5, 5)) == (5, 2.0)


def too_few(nodes, minimum):
    clock = FakeClock()
    with pytest.raises(FleetError) as caught:
        wait_for_nodes(nodes, minimum=minimum, wanted=3, timeout_s=120.0, clock=clock)
    return str(caught.value), clock.now()


@pytest.mark.parametrize(
    ("online", "minimum", "message"),
    [
        (
            1,
            2,
            (
                "expected 2 node(s) within 120 s, got 1; start more nodes (in a simulation: "
                '--federation-config "num-supernodes=3 client-resources-num-cpus=1"), or lower '
                "min-nodes"
            ),
        ),
        (
            0,
            0,
            (
                "expected 1 node(s) within 120 s, got 0; start more nodes (in a simulation: "
                '--federation-config "num-supernodes=3 client-resources-num-cpus=1"), or lower '
                "min-nodes"
            ),
        ),
    ],
)
def test_too_few_nodes_end_the_wait_after_its_timeout(online, minimum, message):
    assert too_few(Nodes(online), minimum) == (message, 120.0)


def test_it_sleeps_between_two_looks():
    nodes = Nodes(0)
    too_few(nodes, 1)
    assert nodes.asked == 241


@pytest.mark.parametrize(
    ("condition", "messages"),
    [
        (Condition(), []),
        (Condition(battery_share=1.0, is_discharging=False, is_slowed=False), []),
        (
            Condition(battery_share=0.15, is_discharging=True, is_slowed=True),
            [
                '"b0" is slowed down by heat or a weak supply: its timings are suspect',
                '"b0" runs on its battery, which is 15 % full',
            ],
        ),
    ],
    ids=["unknown", "sound", "worn"],
)
def test_a_board_that_is_slowed_down_or_runs_on_its_battery_is_told_of(condition, messages, caplog):
    class Worn(FakeBoards):
        def _introduce(self, request, context):
            reply = super()._introduce(request, context)
            reply.content["report"]["condition"] = json.dumps(condition.to_json())
            return reply

    clients = asked(Worn(LAYOUT), nodes=1)
    assert clients["b0"].condition == condition
    assert caplog.messages == messages
