"""The Flower client: two handlers, and nothing else that knows Flower's client side."""

from __future__ import annotations

import json
import time

import torch
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from client_app.condition import condition_now
from client_app.initial import initial_digests
from client_app.link_log import Arrival, remember, transfer_in
from client_app.probes.peak import MemoryPeak, ProcessPeak
from client_app.report import measured_cost
from client_app.resources import Identity, capacity_now, identify, measured_dir
from client_app.round import BoardRound, examples_of, strategy_of
from device_profiles.energy.choice import energy_meter
from device_profiles.energy.reading import EnergyReading
from device_profiles.system_files import SystemFiles
from fedfreeze.code_digest import code_digest
from fedfreeze.condition import Condition
from fedfreeze.messages import (
    MODEL_FORMAT,
    PACKET_FORMAT,
    PACKETS_FORMAT,
    PROTOCOL,
    EnergyReport,
    ResourceQuery,
    ResourceReport,
    TrainOrder,
    check_protocol,
    packed,
    unpacked,
)

app = ClientApp()


@app.query("resources")
def resources(message: Message, context: Context) -> Message:
    """Say who this node is, what it can do, how it is, and how many examples it holds."""
    query = ResourceQuery.from_record(message.content.get("query"))
    check_protocol(query.protocol)
    who = identify(context)
    strategy = strategy_of(query.strategy)
    _note(message, who)
    capacity, profile = capacity_now(
        who,
        fleet=query.fleet,
        seed=strategy.seed,
        round_number=query.round_number,
        device=strategy.local.device,
    )
    condition = Condition() if who.simulated else condition_now(SystemFiles())
    examples = examples_of(who, query.strategy, query.data_dir)
    report = ResourceReport(
        protocol=PROTOCOL,
        code_digest=code_digest(),
        device_id=who.device_id,
        profile=profile,
        capacity=json.dumps(capacity.to_json()),
        examples=len(examples),
        initial=initial_digests(strategy),
        condition=json.dumps(condition.to_json()),
    )
    return Message(RecordDict({"report": report.to_record()}), reply_to=message)


@app.train()
def train(message: Message, context: Context) -> Message:
    """Carry out one order."""
    order = TrainOrder.from_record(message.content.get("order"))
    check_protocol(order.protocol)
    who = identify(context)
    arrival = _note(message, who)
    if who.simulated:
        # Simulated boards share a machine, and sums of several threads differ in their last bits.
        torch.set_num_threads(1)
    by_packets = "packets" in message.content
    came = (
        unpacked(message.content, "packets", PACKETS_FORMAT)
        if by_packets
        else unpacked(message.content, "model", MODEL_FORMAT)
    )
    meter = None if who.simulated else energy_meter(SystemFiles(), None)
    if meter is not None:
        meter.start()
    board = BoardRound(order, who)
    peak = _peak(board)
    if peak is not None:
        # The message that brought them is in memory already.
        peak.start(len(came))
    reply = board.play(came, by_packets=by_packets)
    content = RecordDict({"report": reply.report.to_record()})
    if meter is not None and (energy := _energy(meter.stop())) is not None:
        content["energy"] = energy.to_record()
    if reply.packet is not None:
        content["packet"] = packed(reply.packet, PACKET_FORMAT)
        if not who.simulated:
            content["measured"] = measured_cost(
                memory_bytes=None if peak is None else peak.stop(),
                download_s=transfer_in(measured_dir(who), arrival, message.metadata.ttl),
            ).to_record()
    return Message(content, reply_to=message)


def _energy(reading: EnergyReading) -> EnergyReport | None:
    """What is sent of a reading; None where nothing was measured."""
    if reading.energy_j is None:
        return None
    return EnergyReport(
        energy_j=reading.energy_j,
        source=reading.source,
        scope=reading.scope,
        samples=reading.samples,
        gaps_s=reading.gaps_s,
    )


def _peak(board: BoardRound) -> MemoryPeak | None:
    """What tells the memory of a round; None where it is not this process's alone.

    Simulated boards share processes that live on, and a GPU has memory that the kernel does not
    count.
    """
    if board.who.simulated or board.device.type != "cpu":
        return None
    return ProcessPeak(SystemFiles())


def _note(message: Message, who: Identity) -> Arrival:
    """When a message came; a real board keeps it, for what it tells of the link."""
    now_s = time.time()
    arrival = Arrival(
        _content_bytes(message.content),
        waited_s=now_s - message.metadata.created_at,
        clock_s=now_s - time.monotonic(),
    )
    if not who.simulated:
        remember(measured_dir(who), arrival)
    return arrival


def _content_bytes(content: RecordDict) -> int:
    """About what travelled: arrays and texts, without the few hundred bytes around them."""
    arrays = sum(len(a.data) for record in content.array_records.values() for a in record.values())
    values = [v for record in content.config_records.values() for v in record.values()]
    return arrays + sum(len(value) for value in values if isinstance(value, str | bytes))
