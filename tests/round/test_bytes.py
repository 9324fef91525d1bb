"""Bytes in the whole run: every figure is the length of what crossed, and nothing is over."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from compression import EMPTY_PACKET_BYTES
from device_profiles.board import load_board
from device_profiles.simulated import simulated_capacity
from fedfreeze.plan import Plan
from tests.conftest import records
from tests.round.random_plans import ROUNDS, advice, drawn
from tests.serialised import message_bytes

# One after another, for each of the four ways down; each run makes up to nine plans.
MODES = ("sparse", "dense", "sparse", "literal") * 3
LEAST_PLANS = 60


class Wire:
    """Every order and reply that crossed, by round and device, with the bytes that it was."""

    def __init__(self):
        self.orders = {}
        self.replies = {}

    def __call__(self, message, size):
        assert size == message_bytes(message)
        for part, found in (("order", self.orders), ("report", self.replies)):
            record = message.content.get(part)
            if record is not None and "round_number" in record:
                key = record["round_number"], record["device_id"]
                assert key not in found
                found[key] = message, size


def carried_bytes(settings, case, number, device_id):
    """What the board's uplink carries in the strategy's upload-time in this round."""
    board = load_board(case.boards[int(device_id.removeprefix("sim-"))])
    capacity = simulated_capacity(
        board, seed=settings.seed, device_id=device_id, round_number=number
    )
    return capacity.uplink_bytes_per_s.value * settings.compression.upload_time


def check_decision(wire, record, most_bytes):
    """One line of the audit log against the two messages that it is about.

    Returns what bound the plan if anything did; "sat-out" or "empty" where no value was sent.
    """
    key = record["round"], record["device_id"]
    order, order_bytes = wire.orders[key]
    assert record["download_bytes"] == order_bytes
    suggestion = Plan.from_json(json.loads(order.content["order"]["plan"]))
    assert record["upload_budget_bytes"] <= suggestion.upload_budget_bytes
    reply, reply_bytes = wire.replies[key]
    assert record["upload_bytes"] == reply_bytes
    if "packet" not in reply.content:
        assert record["status"] == "sat-out"
        assert "upload_packet_bytes" not in record
        return "sat-out"
    packet = reply.content["packet"]["packed"].data
    assert record["upload_packet_bytes"] == len(packet)
    assert len(packet) <= record["upload_budget_bytes"]
    assert reply_bytes <= most_bytes
    return "empty" if len(packet) <= EMPTY_PACKET_BYTES else record["binding"]


def check_run(run, wire, case):
    """What became of each plan."""
    decisions = records(run.folder, "decisions")
    assert [r["failures"] for r in records(run.folder) if "failures" in r] == []
    asked = [record for record in decisions if "download_bytes" in record]
    assert {(r["round"], r["device_id"]) for r in asked} == set(wire.orders) == set(wire.replies)
    outcomes = [
        check_decision(
            wire,
            record,
            carried_bytes(run.settings, case, record["round"], record["device_id"]),
        )
        for record in asked
    ]
    for of_round in records(run.folder):
        number = of_round["round"]
        for name, crossed in (("download", wire.orders), ("upload", wire.replies)):
            sizes = [size for (in_round, _), (_, size) in crossed.items() if in_round == number]
            assert of_round[f"{name}_bytes"] == sum(sizes)
    summary = run.folder.read_status().summary
    assert summary["upload_bytes"] == sum(size for _, size in wire.replies.values())
    assert summary["download_bytes"] == sum(size for _, size in wire.orders.values())
    last = [size for (number, _), (_, size) in wire.replies.items() if number == ROUNDS]
    metrics = run.strategy.result.metrics(run.strategy.layout)
    assert metrics["upload-bytes"] == sum(last)
    return outcomes


@pytest.mark.parametrize("downlink", ["dense", "delta", "quantised", "sparse"])
def test_bytes_are_those_that_crossed_and_within_the_budget_whatever_the_plan(
    small_run, tmp_path, downlink
):
    outcomes = Counter()
    for number, mode in enumerate(MODES):
        seed = [*downlink.encode(), number]
        rng, wire = np.random.default_rng(seed), Wire()
        case = drawn(rng, mode, downlink, tmp_path / f"fleet-{number}.toml")
        try:
            run = small_run(*case.overrides, name=str(number), grid={"on_wire": wire})
            run.strategy.policy.advise = advice(rng)
            run.play()
            outcomes.update(check_run(run, wire, case))
        except Exception as error:
            error.add_note(f"with the seed {seed}: {case}")
            raise
    assert outcomes.total() - outcomes["sat-out"] - outcomes["empty"] >= LEAST_PLANS
    assert outcomes["uplink"] >= LEAST_PLANS // 6
    # By packets, only a first order is heavy, and of that server and board know the same.
    assert outcomes["sat-out"] >= (downlink in {"dense", "delta"})
