"""The Flower client: two handlers, and nothing else that knows Flower's client side."""

from __future__ import annotations

import json

import torch
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from client_app.initial import initial_digests
from client_app.resources import capacity_now, identify
from client_app.round import BoardRound, examples_of, strategy_of
from fedfreeze.code_digest import code_digest
from fedfreeze.messages import (
    MODEL_FORMAT,
    PACKET_FORMAT,
    PACKETS_FORMAT,
    PROTOCOL,
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
    capacity, profile = capacity_now(
        who, fleet=query.fleet, seed=strategy.seed, round_number=query.round_number
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
    if who.simulated:
        # Simulated boards share a machine, and sums of several threads differ in their last bits.
        torch.set_num_threads(1)
    by_packets = "packets" in message.content
    came = (
        unpacked(message.content, "packets", PACKETS_FORMAT)
        if by_packets
        else unpacked(message.content, "model", MODEL_FORMAT)
    )
    reply = BoardRound(order, who).play(came, by_packets=by_packets)
    content = RecordDict({"report": reply.report.to_record()})
    if reply.packet is not None:
        content["packet"] = packed(reply.packet, PACKET_FORMAT)
    return Message(content, reply_to=message)
