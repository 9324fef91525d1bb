"""The two handlers, called by a grid that serialises every message."""

import json
from dataclasses import replace

import pytest
from flwr.app import Message, MessageType, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

from client_app.app import _energy, app
from client_app.condition import condition_now
from compression import decode
from device_profiles.board import load_board
from device_profiles.energy.reading import EnergyReading
from device_profiles.fleet import fleet_text
from device_profiles.system_files import SystemFiles
from fedfreeze.capacity import Capacity
from fedfreeze.code_digest import code_digest
from fedfreeze.messages import (
    NO_TEXT,
    PACKET_FORMAT,
    PROTOCOL,
    QUERY,
    EnergyReport,
    ResourceQuery,
    ResourceReport,
    TrainReport,
    unpacked,
)
from tests.conftest import records
from tests.grid import FIRST_NODE, RAISED, InProcessGrid
from tests.tiny_task import EXAMPLES, task


@pytest.fixture(autouse=True)
def _a_home_of_its_own(tmp_path, monkeypatch):
    """Real boards measure themselves, and keep it there."""
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))


TINY = ('task="tests.tiny_task"', "fleet=high", "compression.compression-ratio=1", "rounds=4")


def ask(content, kind, node_configs):
    grid = InProcessGrid(app, 1, node_configs=node_configs)
    (reply,) = grid.send_and_receive([Message(content, FIRST_NODE, kind)])
    return reply


@pytest.fixture
def orders(small_run):
    """Every order that a run of one round sent, as its clients got it."""
    seen = []
    run = small_run(
        *TINY, grid={"on_order": lambda m: seen.append(m.content) if "order" in m.content else None}
    )
    run.play(until=1)
    return seen


def query_of(run):
    return ResourceQuery(
        PROTOCOL, 1, run.settings.model_dump_json(by_alias=True), fleet_text("high"), NO_TEXT
    )


def test_a_board_says_who_it_is_what_it_can_do_and_how_many_examples_it_holds(small_run):
    query = query_of(small_run(*TINY))
    reply = ask(
        RecordDict({"query": query.to_record()}),
        QUERY,
        [{"device-id": "cam-07", "profile": "laptop"}],
    )
    report = ResourceReport.from_record(reply.content["report"])
    assert (report.device_id, report.profile, report.examples) == ("cam-07", "laptop", EXAMPLES)
    assert report.code_digest == code_digest()
    capacity = Capacity.from_json(json.loads(report.capacity))
    assert capacity.uplink_bytes_per_s.value == load_board("laptop").uplink.value
    assert capacity.memory_bytes.source == "measured"
    # Temperatures move in between.
    assert set(json.loads(report.condition)) == set(condition_now(SystemFiles()).to_json())


def test_a_simulated_board_says_nothing_of_this_machines_sensors(small_run):
    query = query_of(small_run(*TINY))
    reply = ask(RecordDict({"query": query.to_record()}), QUERY, simulated())
    assert ResourceReport.from_record(reply.content["report"]).condition == "{}"


def test_a_query_of_another_protocol_is_refused(small_run):
    query = replace(query_of(small_run(*TINY)), protocol=2)
    reply = ask(RecordDict({"query": query.to_record()}), QUERY, [{"device-id": "cam"}])
    assert (reply.error.code, reply.error.reason) == (
        RAISED,
        (
            "ProtocolError: expected protocol 1, got 2; install the same release of FedFreeze on "
            "the server and on every board"
        ),
    )


def test_a_node_without_a_name_answers_with_the_fix(small_run):
    reply = ask(RecordDict({"query": query_of(small_run(*TINY)).to_record()}), QUERY, [{}])
    assert reply.error.reason == (
        "ConfigError: this node has no name; start it with --node-config 'device-id=\"...\"' "
        "(simulated nodes are named by their partition-id)"
    )


def simulated(index=0):
    return [{"partition-id": index, "num-partitions": 3}]


def test_an_order_is_carried_out_and_its_packet_lies_beside_the_report(orders):
    reply = ask(orders[0], MessageType.TRAIN, simulated())
    report = TrainReport.from_record(reply.content["report"])
    packet = unpacked(reply.content, "packet", PACKET_FORMAT)
    assert (report.status, report.round_number, report.detail) == ("trained", 1, "repeated")
    assert decode(packet, task.layout(), max_bytes=10**6).layers == task.layout().names


def test_an_order_for_another_device_is_refused(orders):
    reply = ask(orders[0], MessageType.TRAIN, simulated(1))
    assert reply.error.reason == (
        'ProtocolError: the order is for "sim-0000", this is "sim-0001"; two nodes may share a '
        "device-id"
    )


def test_an_order_for_another_layout_is_refused(orders):
    orders[0]["order"]["fingerprint"] = "0" * 16
    reply = ask(orders[0], MessageType.TRAIN, simulated())
    assert reply.error.reason == (
        f"ProtocolError: expected a model with the layout {task.layout().fingerprint}, the server "
        f"has {'0' * 16}; install the same release and the same task on both"
    )


def test_an_order_without_the_models_bytes_is_refused(orders):
    del orders[0]["model"]
    reply = ask(orders[0], MessageType.TRAIN, simulated())
    assert reply.error.reason == (
        "ProtocolError: expected one packed array under 'model', got None"
    )


def test_packets_of_the_model_in_another_format_are_refused(orders):
    orders[0]["packets"] = orders[0]["model"]
    reply = ask(orders[0], MessageType.TRAIN, simulated())
    assert reply.error.reason == (
        "ProtocolError: 'packets': expected the format fedfreeze.packets.v1, "
        "got 'fedfreeze.safetensors.v1'"
    )


def outcomes(run, device_id="sim-0001"):
    return [
        (record["status"], record.get("residual_was"))
        for record in records(run.folder, "decisions")
        if record["device_id"] == device_id
    ]


def test_a_board_whose_store_was_deleted_asks_for_the_model_and_is_back_a_round_later(small_run):
    """Round 2 is void, so in round 3 the server takes it that the boards lack nothing."""

    def refuse(message):
        order = message.content.get("order", {})
        if order.get("round_number") == 2 and order["device_id"] != "sim-0001":
            raise ValueError("no")

    run = small_run(*TINY, grid={"on_order": refuse})
    run.play(until=2)
    for path in (run.folder.simulated_boards / "boards/sim-0001").iterdir():
        path.unlink()
    run.play(until=4)
    assert outcomes(run) == [
        ("used", "nothing"),
        ("void", "accepted"),
        ("failed", None),
        ("used", "nothing"),
    ]
    assert outcomes(run, "sim-0000") == [
        ("used", "nothing"),
        ("failed", None),
        ("used", "accepted"),
        ("used", "accepted"),
    ]
    assert records(run.folder)[2]["failures"] == {
        "sim-0001": "lost the published model: expected version 1, the board holds none"
    }


def test_a_packet_that_was_lost_on_its_way_is_returned_to_the_residual(small_run):
    def lose(reply):
        report = reply.content.get("report")
        lost = report.get("round_number") == 2 and report["device_id"] == "sim-0001"
        return None if lost else reply

    run = small_run(*TINY, 'clients.round-timeout="300 ms"', grid={"on_reply": lose})
    run.play(until=3)
    assert outcomes(run) == [("used", "nothing"), ("failed", None), ("used", "returned")]


def test_a_board_is_charged_for_what_is_left_of_a_reply_without_the_packet(small_run):
    """The plan of the next round leaves room for numbers of more digits than there were."""
    replies = {}

    def look(reply):
        if "packet" in reply.content:
            replies[reply.content["report"]["device_id"]] = reply
        return reply

    run = small_run(*TINY, grid={"on_reply": look})
    run.play(until=1)
    assert len(replies) == 3
    for device_id, reply in replies.items():
        objects = get_all_nested_objects(reply).values()
        weight = sum(len(part.deflate()) for part in objects)
        packet_bytes = len(reply.content["packet"]["packed"].data)
        charged = run.strategy.clients[device_id].envelope_bytes
        assert weight - packet_bytes <= charged <= weight - packet_bytes + 500


def test_a_board_remembers_when_its_messages_came(small_run, tmp_path):
    query = RecordDict({"query": query_of(small_run(*TINY)).to_record()})
    ask(query, QUERY, [{"device-id": "cam-07", "profile": "laptop"}])
    kept = tmp_path / "home/state/measured/cam-07/messages.jsonl"
    ((size, waited_s, _),) = [json.loads(line) for line in kept.read_text().splitlines()]
    texts = [value for value in query["query"].values() if isinstance(value, str)]
    assert size == sum(map(len, texts))
    # The same clock made the message and saw it come.
    assert 0 <= waited_s < 3600


def test_a_simulated_board_remembers_nothing_of_the_machine(small_run, tmp_path):
    query = RecordDict({"query": query_of(small_run(*TINY)).to_record()})
    ask(query, QUERY, [{"partition-id": 0, "num-partitions": 1}])
    assert not (tmp_path / "home").exists()


def test_a_reading_without_energy_is_not_sent():
    nothing = EnergyReading(None, "ina3221", "board", 1, None, 0.0)
    assert _energy(nothing) is None
    assert _energy(replace(nothing, energy_j=2.5, samples=9)) == EnergyReport(
        energy_j=2.5, source="ina3221", scope="board", samples=9, gaps_s=0.0
    )
