"""The Flower client: two handlers, and nothing else that knows Flower's client side."""

from __future__ import annotations

import json
import time

import torch
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from client_app.initial import initial_digests
from client_app.link_log import Arrival, remember
from client_app.resources import Identity, capacity_now, identify, measured_dir
from client_app.round import BoardRound, examples_of, strategy_of
from device_profiles.energy.choice import energy_meter
from device_profiles.energy.reading import EnergyReading
from device_profiles.system_files import SystemFiles
from fedfreeze.code_digest import code_digest
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
    """Say who this node is, what it can do, and how many examples it holds."""
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
    examples = examples_of(who, query.strategy, query.data_dir)
    report = ResourceReport(
        protocol=PROTOCOL,
        code_digest=code_digest(),
        device_id=who.device_id,
        profile=profile,
        capacity=json.dumps(capacity.to_json()),
        examples=len(examples),
        initial=initial_digests(strategy),
    )
    return Message(RecordDict({"report": report.to_record()}), reply_to=message)


@app.train()
def train(message: Message, context: Context) -> Message:
    """Carry out one order."""
    order = TrainOrder.from_record(message.content.get("order"))
    check_protocol(order.protocol)
    who = identify(context)
    _note(message, who)
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
    reply = BoardRound(order, who).play(came, by_packets=by_packets)
    content = RecordDict({"report": reply.report.to_record()})
    if meter is not None and (energy := _energy(meter.stop())) is not None:
        content["energy"] = energy.to_record()
    if reply.packet is not None:
        content["packet"] = packed(reply.packet, PACKET_FORMAT)
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


def _note(message: Message, who: Identity) -> None:
    """Keep when a message reached a real board, for what it tells of the link."""
    if not who.simulated:
        waited_s = time.time() - message.metadata.created_at
        remember(measured_dir(who), Arrival(_content_bytes(message.content), waited_s))


def _content_bytes(content: RecordDict) -> int:
    """About what travelled: arrays and texts, without the few hundred bytes around them."""
    arrays = sum(len(a.data) for record in content.array_records.values() for a in record.values())
    values = [v for record in content.config_records.values() for v in record.values()]
    return arrays + sum(len(value) for value in values if isinstance(value, str | bytes))
