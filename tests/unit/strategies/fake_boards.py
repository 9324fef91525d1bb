"""Boards that train nothing: a ClientApp that answers orders with the deltas that a test chooses.

Everything else is real: the messages, the codec, the plan that comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from compression import encode, packet_digest
from fedfreeze.capacity import Capacity
from fedfreeze.code_digest import code_digest
from fedfreeze.layout import Layout
from fedfreeze.messages import (
    NO_TEXT,
    PACKET_FORMAT,
    PROTOCOL,
    ResourceReport,
    TrainOrder,
    TrainReport,
    packed,
)
from fedfreeze.plan import Plan
from strategies.mask_rule import MaskRule
from tests.unit.strategies.samples import board

Delta = Callable[[str, str], float]


def genuine_reply(
    order: TrainOrder,
    layout: Layout,
    *,
    examples: int = 10,
    capacity: Capacity | None = None,
    delta: Delta = lambda device_id, layer: 1.0,
    change: Callable[[TrainReport], TrainReport] = lambda report: report,
    mask_rule: MaskRule | None = None,
) -> RecordDict:
    """What a board that follows its orders sends back; ``change`` may spoil the report."""
    plan = Plan.from_json(json.loads(order.plan))
    trained = layout.ordered(plan.trained)
    update = {
        t.name: np.full(t.shape, delta(order.device_id, name), np.float32)
        for name in trained
        for t in layout[name].tensors
        if t.is_float
    }
    budget_bytes, number = plan.upload_budget_bytes, order.round_number
    mask = mask_rule and mask_rule.mask(layout, trained, budget_bytes, number)
    packet = encode(
        update,
        layout,
        trained,
        budget_bytes=budget_bytes,
        round_number=number,
        positions=mask and mask.positions(layout, trained),
    ).packet
    report = TrainReport(
        protocol=PROTOCOL,
        code_digest=code_digest(),
        device_id=order.device_id,
        round_number=order.round_number,
        status="trained",
        detail="no packet was pending",
        held_version=order.model_version,
        capacity=json.dumps((capacity or board()).to_json()),
        examples=examples,
        plan=NO_TEXT,
        measures=json.dumps({name: [0.5, 0.25] for name in trained}),
        packet_digest=packet_digest(packet),
        train_loss=1.5,
        train_s=0.1,
        residual_norm=0.0,
        residual_rounding_norm=0.0,
        unmet_floors="[]",
        widths="{}",
        residuals="{}",
    )
    return RecordDict(
        {"report": change(report).to_record(), "packet": packed(packet, PACKET_FORMAT)}
    )


@dataclass
class FakeBoards:
    """A fleet of boards ``b0``, ``b1``, ... around one ClientApp.

    Attributes:
        delta: by device id and layer, what every value of the update is.
        examples: by device id; 10 where nothing is said.
        capacity: that boards report when they are asked who they are.
        capacities: the same by device id, where a board differs.
        later_capacity: by device id, what they report after training.
        change: spoils the report of a board, by device id.
        silent: boards that raise instead of answering an order.
        orders: every order that arrived, in order of arrival.
    """

    layout: Layout
    delta: Delta = lambda device_id, layer: 1.0
    examples: dict[str, int] = field(default_factory=dict)
    capacity: Capacity = field(default_factory=board)
    capacities: dict[str, Capacity] = field(default_factory=dict)
    later_capacity: dict[str, Capacity] = field(default_factory=dict)
    change: dict[str, Callable[[TrainReport], TrainReport]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    names: dict[int, str] = field(default_factory=dict)
    digest: str = field(default_factory=code_digest)
    orders: list[TrainOrder] = field(default_factory=list)

    def app(self) -> ClientApp:
        app = ClientApp()
        app.query("resources")(self._introduce)
        app.train()(self._train)
        return app

    def _capacity(self, name: str) -> Capacity:
        return self.capacities.get(name, self.capacity)

    def _introduce(self, message: Message, context: Context) -> Message:
        index = int(context.node_config["partition-id"])
        name = self.names.get(index, f"b{index}")
        report = ResourceReport(
            protocol=PROTOCOL,
            code_digest=self.digest,
            device_id=name,
            profile="fake",
            capacity=json.dumps(self._capacity(name).to_json()),
            examples=self.examples.get(name, 10),
            initial=NO_TEXT,
        )
        return Message(RecordDict({"report": report.to_record()}), reply_to=message)

    def _train(self, message: Message, context: Context) -> Message:
        order = TrainOrder.from_record(message.content["order"])
        self.orders.append(order)
        name = order.device_id
        if name in self.silent:
            raise RuntimeError("out of memory")
        content = genuine_reply(
            order,
            self.layout,
            examples=self.examples.get(name, 10),
            capacity=self.later_capacity.get(name, self._capacity(name)),
            delta=self.delta,
            change=self.change.get(name, lambda report: report),
        )
        return Message(content, reply_to=message)
