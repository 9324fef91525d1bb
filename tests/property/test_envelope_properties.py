"""What a reply may weigh beside its packet bounds every reply that a board can write."""

import json

from flwr.app import RecordDict
from hypothesis import given
from hypothesis import strategies as st

from compression import packet_digest
from fedfreeze.capacity import Capacity, Known
from fedfreeze.code_digest import code_digest
from fedfreeze.messages import (
    NO_TEXT,
    PACKET_FORMAT,
    PROTOCOL,
    EnergyReport,
    MeasuredCost,
    TrainReport,
    packed,
)
from fedfreeze.wire_size import planned_bytes
from strategies import schema
from strategies.envelope import EnvelopeBound
from tests.unit.strategies.samples import stack

LAYOUT = stack()
SPARSE = schema.from_text(
    "version = 1\nrounds = 1\n[residual]\nsummary = true\n[compression.floors]\n'*' = 0.1"
)
LITERAL = schema.from_text(
    "version = 1\nrounds = 1\n[residual]\nsummary = true\n[compression]\nmode = 'literal'"
)
# What the plan's text may hold; the bound takes it as it is.
PLANS = st.one_of(st.just(NO_TEXT), st.text(max_size=200))

six_digits = st.floats(0, 1e30, allow_subnormal=True).map(lambda value: float(f"{value:.6g}"))
whole = st.integers(0, 2**63 - 1)
known = st.builds(
    Known,
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    st.sampled_from(["measured", "profile", "assumed"]),
)


def compact(value):
    return json.dumps(value, separators=(",", ":"))


some_layers = st.lists(st.sampled_from(LAYOUT.names), unique=True)
bits = st.sampled_from([2, 4, 8, 16])
energies = st.builds(
    EnergyReport,
    energy_j=st.floats(0, 1e300),
    source=st.sampled_from(["ina3221", "ina219", "pmic", "rapl"]),
    scope=st.sampled_from(["board", "processor", "rails"]),
    samples=whole,
    gaps_s=st.floats(0, 1e300),
)

measured_costs = st.builds(
    MeasuredCost, memory_bytes=st.floats(-1, 1e15), download_s=st.floats(-1, 1e15)
)


@st.composite
def reports(draw, device_id, *, literal=False):
    layers = draw(st.lists(st.sampled_from(LAYOUT.names), unique=True, min_size=1))
    pairs = st.lists(six_digits, min_size=2, max_size=2)
    left = draw(some_layers)
    report = TrainReport(
        protocol=PROTOCOL,
        code_digest=code_digest(),
        device_id=device_id,
        round_number=draw(whole),
        status="trained",
        detail=draw(st.sampled_from(["nothing", "accepted", "returned", "repeated"])),
        held_version=draw(st.one_of(st.just(-1), whole)),
        capacity=compact(draw(st.builds(Capacity, known, known, known, known)).to_json()),
        examples=draw(whole),
        plan=draw(PLANS),
        measures=compact({name: draw(pairs) for name in layers}),
        packet_digest=packet_digest(draw(st.binary(max_size=4))),
        train_loss=draw(st.floats(allow_nan=False)),
        train_s=draw(st.floats(0, 1e9)),
        residual_norm=draw(st.floats(0, 1e30)),
        residual_rounding_norm=draw(st.floats(0, 1e30)),
        unmet_floors="[]" if literal else compact(draw(some_layers)),
        widths=compact(
            {name: [draw(bits), draw(six_digits)] for name in layers} if literal else {}
        ),
        residuals=compact(
            {name: [*draw(pairs), draw(st.one_of(st.none(), whole))] for name in left}
        ),
    )
    return layers, report


def envelope_bytes(report, packet_bytes, energy=None, measured=None):
    content = RecordDict(
        {"report": report.to_record(), "packet": packed(bytes(packet_bytes), PACKET_FORMAT)}
    )
    if energy is not None:
        content["energy"] = energy.to_record()
    if measured is not None:
        content["measured"] = measured.to_record()
    return planned_bytes(content) - packet_bytes


@given(reports("sim-0007"), st.integers(1, 3_000), st.integers(0, 10**9))
def test_no_reply_weighs_more_beside_its_packet_than_its_bound(drawn, packet_bytes, budget_above):
    layers, report = drawn
    bound = EnvelopeBound(SPARSE, LAYOUT, "sim-0007")
    most = bound.most_bytes(layers, packet_bytes + budget_above, plan=report.plan)
    assert envelope_bytes(report, packet_bytes) <= most


@given(reports("cam-07"), st.none() | energies, measured_costs)
def test_the_bound_of_a_real_board_has_room_for_what_it_measured(drawn, energy, measured):
    layers, report = drawn
    bound = EnvelopeBound(SPARSE, LAYOUT, "cam-07")
    most = bound.most_bytes(layers, 1, plan=report.plan)
    assert envelope_bytes(report, 1, energy, measured) <= most


@given(reports("sim-0007", literal=True))
def test_the_bound_has_room_for_the_widths_of_mode_literal(drawn):
    layers, report = drawn
    bound = EnvelopeBound(LITERAL, LAYOUT, "sim-0007")
    assert envelope_bytes(report, 1) <= bound.most_bytes(layers, 1, plan=report.plan)
