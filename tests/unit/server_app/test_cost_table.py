"""Predicted beside measured cost of one client, with figures that can be worked out by hand."""

import json
from dataclasses import replace

import pytest

from device_profiles.board import load_board
from fedfreeze.capacity import Known
from fedfreeze.code_digest import code_digest
from fedfreeze.messages import NO_VALUE, EnergyReport, MeasuredCost
from fedfreeze.plan import Plan, Stage
from server_app.cost_table import QUANTITIES, cost_table
from strategies.clients import Client
from strategies.few_examples import FewExamples
from strategies.freeze.policy import Advice
from strategies.orders import Asked, Desk, Shipment
from strategies.planner import Load
from strategies.published import Published
from strategies.replies import understand
from tests.unit.strategies.fake_boards import genuine_reply
from tests.unit.strategies.samples import board, constant, stack

LAYOUT = stack(stem=100, body=200, head=50)
PLAN = Plan((Stage(1.0, LAYOUT.names),), 2, 10, 300)
# The server knew of another board than the order met: half the downlink.
PLANNED_WITH = board(downlink=5e5)
FOUND = board(flops=1e6, uplink=1e3)
POWER = load_board("rpi-4b-4gb").power
DRAWN = EnergyReport(energy_j=0.5, source="ina3221", scope="board", samples=9, gaps_s=0.0)


def asked_of(device_id, profile="rpi-4b-4gb"):
    client = Client(device_id, profile, PLANNED_WITH, 10, 100)
    order = Desk("run", "{}", "-", "-", "-", "delta").order(
        client, PLAN, Published(LAYOUT, constant(LAYOUT, 1.0)), 3, Shipment(LAYOUT.names)
    )
    load = Load(10, 5_000, 1_000)
    return Asked(client, 100, Advice({}, {}), PLAN, order, load, download_bytes=4_000)


def answered(asked, *, found=FOUND, **changes):
    """A board that trained for 0.04 s."""
    content = genuine_reply(
        asked.order, LAYOUT, capacity=found, change=lambda report: replace(report, train_s=0.04)
    )
    answer = understand(
        content,
        asked,
        LAYOUT,
        upload_bytes=1_040,
        code_digest=code_digest(),
        optimizer_slots=0,
        few_examples=FewExamples(),
    )
    return replace(answer, **changes)


CAM = asked_of("cam-07")
MEASURED = MeasuredCost(memory_bytes=3e7, download_s=0.02)


def table(asked=CAM, **changes):
    return cost_table(asked, PLANNED_WITH, answered(asked, **changes))


# Two epochs of 10 examples: forward 700, gradients of inputs 500 and of weights 700 operations.
COMPUTE_S = 2 * 10 * (700 + 500 + 700) / 1e6


def test_of_a_real_board_every_quantity_has_what_was_predicted_and_what_it_measured():
    found = table(measured=MEASURED, energy=DRAWN)
    assert tuple(found) == QUANTITIES
    assert found == {
        # The largest packet and the room for its envelope; all that came.
        "upload_bytes": {"modelled": 1_300, "measured": 1_040},
        "download_bytes": {"modelled": 5_000, "measured": 4_000},
        "memory_bytes": {"modelled": answered(CAM).cost.modelled_memory_bytes, "measured": 3e7},
        # Planned with 500 kB/s, whatever the board found when the order was there.
        "download_s": {"modelled": 0.01, "measured": 0.02},
        "compute_s": {"modelled": pytest.approx(COMPUTE_S), "measured": 0.04},
        # The process has ended before its upload begins.
        "upload_s": {"modelled": 1.3},
        "energy_j": {
            "modelled": pytest.approx(POWER.compute.value * COMPUTE_S),
            "measured": 0.5,
        },
    }


def test_of_a_simulated_board_bytes_alone_are_measured_whatever_its_reply_says():
    found = table(asked_of("sim-0003"), measured=MEASURED, energy=DRAWN)
    measured = {quantity: row["measured"] for quantity, row in found.items() if "measured" in row}
    assert measured == {"upload_bytes": 1_040, "download_bytes": 4_000}


def test_what_a_board_could_not_measure_is_absent():
    nothing = MeasuredCost(memory_bytes=NO_VALUE, download_s=NO_VALUE)
    for changes in ({"measured": nothing}, {}):
        found = table(**changes)
        measured = [quantity for quantity, row in found.items() if "measured" in row]
        assert measured == ["upload_bytes", "download_bytes", "compute_s"]


@pytest.mark.parametrize("scope", ["processor", "rails"])
def test_joules_of_a_part_of_the_board_are_not_held_against_those_of_all_of_it(scope):
    assert "measured" not in table(energy=replace(DRAWN, scope=scope))["energy_j"]


def test_watts_of_a_board_that_nobody_named_are_not_known():
    assumed = replace(FOUND, uplink_bytes_per_s=Known(1e3, "assumed"))
    assert "energy_j" not in table(found=assumed)
    assert "energy_j" not in table(asked_of("cam-07", "a-board-of-their-own"))
    measured_all_the_same = table(asked_of("cam-07", "of-their-own"), energy=DRAWN)
    assert measured_all_the_same["energy_j"] == {"measured": 0.5}


def test_of_a_board_that_did_not_train_the_order_alone_is_compared():
    assert cost_table(CAM, PLANNED_WITH, None) == {
        "download_bytes": {"modelled": 5_000, "measured": 4_000},
        "download_s": {"modelled": 0.01},
    }


def test_a_table_is_plain_json():
    found = table(measured=MEASURED, energy=DRAWN)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
