import json
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from compression import EMPTY_PACKET_BYTES, LayerResidual, encode, packet_digest
from fedfreeze.code_digest import code_digest
from fedfreeze.errors import FedFreezeError, PacketError, ProtocolError
from fedfreeze.messages import NO_ROUND, NO_TEXT, PACKET_FORMAT, EnergyReport, MeasuredCost, packed
from fedfreeze.plan import Plan, Reason, Stage
from strategies.aggregation.mean import Update
from strategies.clients import Client
from strategies.few_examples import FewExamples
from strategies.freeze.policy import Advice
from strategies.local_step import LayerMeasures
from strategies.mask_rule import MaskRule
from strategies.orders import Asked, Desk, Shipment
from strategies.planner import Load
from strategies.published import Published
from strategies.replies import LayerWidth, check_movement, understand
from tests.unit.strategies.fake_boards import genuine_reply
from tests.unit.strategies.samples import board, constant, stack

LAYOUT = stack(stem=100, body=200, head=50)
SUGGESTION = Plan(
    stages=(Stage(1.0, ("body", "head")),),
    epochs=2,
    batch_size=10,
    upload_budget_bytes=300,
    frozen={"stem": Reason("score", "settled")},
)
CLIENT = Client("b0", "fake", board(), 10, 100)
ORDER = Desk("run", "{}", "-", "-", "-", "delta").order(
    CLIENT, SUGGESTION, Published(LAYOUT, constant(LAYOUT, 1.0)), 3, Shipment(LAYOUT.names)
)
ASKED = Asked(
    CLIENT,
    100,
    Advice({}, {}),
    SUGGESTION,
    ORDER,
    Load(10, 5_000, 1_000),
    download_bytes=5_123,
)


PLAIN = FewExamples()


def understood(content, few_examples=PLAIN, mask_rule=None):
    return understand(
        content,
        ASKED,
        LAYOUT,
        upload_bytes=1_300,
        code_digest=code_digest(),
        optimizer_slots=0,
        few_examples=few_examples,
        mask_rule=mask_rule,
    )


def genuine(**changes):
    """A good reply, but for these fields of its report."""
    return genuine_reply(ORDER, LAYOUT, change=lambda report: replace(report, **changes))


def raw(**changes):
    """As :func:`genuine`, for values that the dataclass would not take."""
    content = genuine()
    for name, value in changes.items():
        content["report"][name] = value
    return content


def refusal(content):
    with pytest.raises(FedFreezeError) as caught:
        understood(content)
    return type(caught.value), str(caught.value)


def protocol_error(content):
    kind, message = refusal(content)
    assert kind is ProtocolError
    return message


def own_plan(**changes):
    return genuine(plan=json.dumps(replace(SUGGESTION, **changes).to_json()))


def packet(layers=("body", "head"), *, number=3, budget=300, layout=LAYOUT, noise=0.0):
    rng = np.random.default_rng(0)
    update = {
        t.name: (1 + noise * rng.normal(size=t.shape)).astype(np.float32)
        for t in layout.tensors.values()
    }
    return encode(update, layout, layers, budget_bytes=budget, round_number=number).packet


def carrying(data, **changes):
    content = genuine(packet_digest=packet_digest(data), **changes)
    content["packet"] = packed(data, PACKET_FORMAT)
    return content


def test_the_losses_of_single_examples_are_absent_where_nobody_measured_them():
    assert understood(genuine()).train_loss_rms is None
    assert understood(genuine(train_loss_rms=1.75)).train_loss_rms == 1.75


def test_few_examples_weigh_less_where_the_strategy_says_so():
    rule = FewExamples("damped-weight", 40)
    assert understood(genuine(examples=10), rule).update.weight == 2.5
    assert understood(genuine(examples=40), rule).update.weight == 40


def test_the_summary_of_a_residual_is_read_layer_by_layer():
    """The stem is frozen in this round, and something of it may be left all the same."""
    text = '{"stem": [2.5, 1, 2], "head": [0, 0, 0], "body": [1e-9, 1e-9, null]}'
    assert understood(genuine(residuals=text)).residuals == {
        "stem": LayerResidual(2.5, 1.0, 2),
        "head": LayerResidual(0.0, 0.0, 0),
        "body": LayerResidual(1e-9, 1e-9, None),
    }


@pytest.mark.parametrize(
    "entry",
    [
        "1",
        "[]",
        "[1, 1]",
        "[1, 1, 0, 0]",
        "[-1, 1, 0]",
        "[1, NaN, 0]",
        "[Infinity, 1, 0]",
        "[1e30, 1, 0]",
        "[true, 1, 0]",
        '["1", 1, 0]',
        "[1, 1, -1]",
        "[1, 1, 4]",
        "[1, 1, 0.5]",
        "[1, 1, true]",
        "[1, 1, 1" + "0" * 40 + "]",
    ],
)
def test_an_entry_of_a_summary_that_cannot_be_is_refused(entry):
    came = json.loads(entry, parse_int=lambda n: int(n) if len(n) < 20 else float(n))
    assert protocol_error(genuine(residuals=f'{{"head": {entry}}}')) == (
        "residuals of 'head': expected 2 numbers >= 0 and an age from 0 to 3 rounds or null, got "
        f"{came!r:.80}"
    )


def test_a_genuine_reply_is_understood():
    answer = understood(genuine())
    assert answer.update is not None
    assert (answer.update.device_id, answer.update.weight) == ("b0", 10.0)
    assert answer.update.layers == ("body", "head")
    assert set(answer.update.deltas) == {"body.w", "head.w"}
    assert answer.plan == SUGGESTION
    assert answer.measures == dict.fromkeys(("body", "head"), LayerMeasures(0.5, 0.25))
    assert answer.capacity == board()
    assert answer.held_version == 0
    assert answer.upload_bytes == 1_300
    assert EMPTY_PACKET_BYTES < answer.packet_bytes <= 300


def test_its_cost_is_that_of_the_bytes_that_plans_are_made_with():
    """Two epochs of 10 examples: forward 700, input gradient 100, weight gradients 500."""
    answer = understood(genuine())
    assert answer.cost.modelled_download_s == pytest.approx(5_000 / 1e6)
    assert answer.cost.modelled_compute_s == pytest.approx(2 * 10 * 1_300 / 1e9)
    moved = answer.packet_bytes + answer.envelope_bytes
    assert answer.cost.modelled_upload_s == pytest.approx(moved / 1e6)


def test_a_client_may_freeze_more_by_itself():
    frozen = {**SUGGESTION.frozen, "body": Reason("memory", "short")}
    smaller = replace(
        SUGGESTION,
        stages=(Stage(1.0, ("head",)),),
        frozen=frozen,
        epochs=1,
        batch_size=5,
        upload_budget_bytes=200,
    )
    answer = understood(
        carrying(packet(("head",), budget=200), plan=json.dumps(smaller.to_json()), measures="{}")
    )
    assert answer.plan == smaller
    assert answer.update is not None
    assert answer.update.layers == ("head",)
    assert answer.measures == {}


def test_the_empty_packet_covers_no_layer_and_may_exceed_a_budget_below_it():
    smallest = replace(SUGGESTION, upload_budget_bytes=1)
    answer = understood(
        carrying(packet(budget=1), plan=json.dumps(smallest.to_json()), measures="{}")
    )
    assert answer.packet_bytes == EMPTY_PACKET_BYTES
    assert answer.update is not None
    assert (answer.update.layers, answer.update.deltas) == ((), {})


@pytest.mark.parametrize("status", ["sat-out", "needs-model"])
def test_a_client_that_did_not_train_needs_no_packet(status):
    content = genuine(status=status, packet_digest=NO_TEXT, held_version=NO_ROUND, measures="{}")
    del content["packet"]
    answer = understood(content)
    assert answer.update is None
    assert (answer.packet_bytes, answer.held_version, answer.measures) == (0, None, {})


FIELDS = sorted(genuine()["report"])


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_must_be_there(field):
    content = genuine()
    del content["report"][field]
    assert protocol_error(content) == (
        f"TrainReport: expected the field '{field}', which is missing"
    )


WRONG = {"int": (True, b"1", [1], "1", 1.5), "float": (True, b"1", [1], "1"), "str": (7, 1.5, [1])}


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_must_be_of_its_type(field):
    kind = type(genuine()["report"][field]).__name__
    for value in WRONG[kind]:
        message = protocol_error(raw(**{field: value}))
        assert message == f"TrainReport.{field}: expected {kind}, got {value!r}"


@pytest.mark.parametrize(
    "field",
    ["train_loss", "train_loss_rms", "train_s", "residual_norm", "residual_rounding_norm"],
)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_every_number_must_be_finite(field, value):
    assert protocol_error(raw(**{field: value})) == (
        f"TrainReport.{field}: expected a finite number, got {value}"
    )


def test_a_field_too_many_is_refused():
    assert protocol_error(raw(extra=1)) == "TrainReport: got the field 'extra', which is unknown"


@pytest.mark.parametrize(
    ("record", "came"), [(None, "NoneType"), (ArrayRecord(), "ArrayRecord")], ids=["none", "arrays"]
)
def test_a_reply_without_a_report_is_refused(record, came):
    content = RecordDict() if record is None else RecordDict({"report": record})
    assert protocol_error(content) == f"TrainReport: expected a ConfigRecord, got {came}"


CAPACITY_FIELDS = (
    "a capacity has the fields flops_per_s, memory_bytes, uplink_bytes_per_s, downlink_bytes_per_s"
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"protocol": 2},
            (
                "expected protocol 1, got 2; install the same release of FedFreeze on the server "
                "and on every board"
            ),
        ),
        (
            {"code_digest": "feed"},
            (
                f"expected code {code_digest()}, got 'feed': the node runs another client_app than "
                "the server's app; install the same release there, and start the SuperLink in an "
                "empty folder"
            ),
        ),
        ({"round_number": 1}, "round: expected 3, got 1"),
        ({"device_id": "b1"}, "device: expected b0, got 'b1'"),
        (
            {"status": "done"},
            "status: expected one of trained, sat-out, needs-model, got 'done'",
        ),
        ({"examples": 0}, "expected 1 example or more, got 0"),
        ({"examples": -5}, "expected 1 example or more, got -5"),
        ({"capacity": ""}, "capacity: expected JSON, got ''"),
        ({"capacity": "[" * 100_000}, f"capacity: expected JSON, got '{'[' * 79}"),
        ({"capacity": "null"}, f"{CAPACITY_FIELDS}, got None"),
        ({"plan": "{"}, "plan: expected JSON, got '{'"),
        ({"plan": '{"a":' * 50_000}, "plan: expected JSON, got '" + ('{"a":' * 16)[:79]),
        (
            {"plan": "[]"},
            "not a plan: TypeError('list indices must be integers or slices, not str')",
        ),
        ({"measures": "[1"}, "measures: expected JSON, got '[1'"),
        ({"measures": "[]"}, "measures: expected entries of trained layers, got '[]'"),
        (
            {"measures": '{"stem": [1, 1]}'},
            """measures: expected entries of trained layers, got '{"stem": [1, 1]}'""",
        ),
        ({"residual_norm": -1.0}, "residual_norm: expected 0 or more, got -1.0"),
        ({"residual_rounding_norm": -0.5}, "residual_rounding_norm: expected 0 or more, got -0.5"),
        ({"train_loss_rms": -0.5}, "train_loss_rms: expected 0 or more, got -0.5"),
        ({"residuals": "{"}, "residuals: expected JSON, got '{'"),
        ({"residuals": "[]"}, "residuals: expected entries of the model's layers, got '[]'"),
        (
            {"residuals": '{"tail": [1, 1, 0]}'},
            """residuals: expected entries of the model's layers, got '{"tail": [1, 1, 0]}'""",
        ),
        (
            {"packet_digest": "0" * 32},
            f"packet digest: expected {packet_digest(packet())}, got '{'0' * 32}'",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_report_of_something_else_is_refused(changes, message):
    assert protocol_error(genuine(**changes)) == message


@pytest.mark.parametrize(
    ("entry", "came"),
    [
        ("1", "1"),
        ("[1]", "[1]"),
        ("[1, 2, 3]", "[1, 2, 3]"),
        ("[NaN, 1]", "[nan, 1]"),
        ("[1, Infinity]", "[1, inf]"),
        ("[-1, 1]", "[-1, 1]"),
        ("[1e30, 1]", "[1e+30, 1]"),
        ('["1", 1]', "['1', 1]"),
        ("[true, 1]", "[True, 1]"),
        (f"[{'9' * 5000}, 1]", "[inf, 1]"),
    ],
)
def test_a_measure_is_two_finite_numbers_of_at_least_0(entry, came):
    assert protocol_error(genuine(measures=f'{{"head": {entry}}}')) == (
        f"measures of 'head': expected 2 numbers >= 0, got {came}"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"stages": (Stage(1.0, LAYOUT.names),), "frozen": {}},
            "the client trained 'stem', which the suggestion freezes",
        ),
        (
            {"upload_budget_bytes": 301},
            "upload_budget_bytes: the suggestion is 300, the client took 301",
        ),
        ({"epochs": 3}, "epochs: the suggestion is 2, the client took 3"),
        ({"batch_size": 11}, "batch_size: the suggestion is 10, the client took 11"),
        (
            {"batch_size": 0},
            "epochs and batch size must be 1 or more and the budget 0 or more, got 2, 0, 300",
        ),
        ({"batch_size": True}, "not a plan: TypeError('expected a whole number, got True')"),
        ({"batch_size": 10**400}, "not a plan: TypeError('expected a whole number, got inf')"),
        (
            {"stages": (Stage(float("nan"), ("body", "head")),)},
            "the shares of a plan's stages must add up to 1, got [nan]",
        ),
        (
            {"stages": (Stage(10**400, ("body", "head")),)},
            "the shares of a plan's stages must add up to 1, got [inf]",
        ),
        (
            {"stages": (Stage("1", ("body", "head")),)},
            "not a plan: TypeError(\"expected a number, got '1'\")",
        ),
        ({"stages": ()}, "a plan needs at least one stage, and every stage a layer"),
        (
            {"frozen": {}},
            (
                "a plan must train or freeze each of stem, body, head; it trains body, head and "
                "freezes "
            ),
        ),
        (
            {"frozen": {"stem": Reason("mood", "")}},
            "not a plan: ValueError(\"unknown reason 'mood'\")",
        ),
        (
            {"cost": {"modelled_total_s": "soon"}},
            "not a plan: TypeError(\"expected a number, got 'soon'\")",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_plan_beyond_the_suggestion_is_refused(changes, message):
    plan = {**SUGGESTION.to_json(), **replace(SUGGESTION, **changes).to_json()}
    # A hostile sender does not stop at the digits that a reader would take.
    text = json.dumps(plan).replace("1" + "0" * 400, "1" * 5000)
    assert protocol_error(genuine(plan=text)) == message


def packet_error(content):
    kind, message = refusal(content)
    assert kind is PacketError
    return message


def test_a_packet_over_its_budget_is_refused():
    big = packet(budget=5_000, noise=1.0)
    assert len(big) > 300
    assert packet_error(carrying(big)) == (
        f"packet: expected from {EMPTY_PACKET_BYTES} to 300 bytes, got {len(big)}; the sender was "
        "given a larger budget, or the upload was cut"
    )


def test_a_packet_over_the_budget_that_the_client_set_itself_is_refused():
    own = packet()
    smaller = json.dumps(replace(SUGGESTION, upload_budget_bytes=len(own) - 1).to_json())
    assert packet_error(carrying(own, plan=smaller)).startswith(
        f"packet: expected from {EMPTY_PACKET_BYTES} to {len(own) - 1} bytes, got {len(own)}; "
    )


def test_a_packet_of_another_round_is_refused():
    assert protocol_error(carrying(packet(number=2))) == "round of the packet: expected 3, got 2"


@pytest.mark.parametrize(
    ("layers", "covers"), [(("head",), "head"), (LAYOUT.names, "stem, body, head")]
)
def test_a_packet_that_covers_other_layers_than_the_plan_is_refused(layers, covers):
    assert protocol_error(carrying(packet(layers))) == (
        f"the packet covers {covers}; the plan trains body, head"
    )


def test_a_packet_of_another_model_is_refused():
    other = stack(stem=100, body=200, head=51)
    assert packet_error(carrying(packet(layout=other))) == (
        f"packet: expected the layout {LAYOUT.fingerprint}, got {other.fingerprint}; the sender "
        "trains another model or another release of it"
    )


def test_a_flipped_bit_is_refused():
    data = bytearray(packet())
    data[-9] ^= 1
    message = packet_error(carrying(bytes(data)))
    assert message.startswith("packet: expected the checksum ")
    assert message.endswith("; the packet is damaged, or another codec wrote it")


@pytest.mark.parametrize(
    "record",
    [
        None,
        ConfigRecord({"packed": 1}),
        ArrayRecord(),
        ArrayRecord({"other": Array("uint8", (1,), PACKET_FORMAT, b"0")}),
    ],
    ids=["none", "config", "empty", "other-key"],
)
def test_a_reply_that_trained_must_carry_one_packet(record):
    content = genuine()
    del content["packet"]
    if record is not None:
        content["packet"] = record
    expected = f"expected one packed array under 'packet', got {content.get('packet')!r:.100}"
    assert protocol_error(content) == expected


def test_a_packet_of_another_format_is_refused():
    content = genuine()
    content["packet"] = packed(packet(), "numpy.ndarray")
    assert protocol_error(content) == (
        "'packet': expected the format fedfreeze.packet.v1, got 'numpy.ndarray'"
    )


def test_an_update_that_no_training_gives_is_refused():
    before = constant(LAYOUT, 0.0)
    huge = {name: np.full_like(array, 3e38) for name, array in before.items()}
    with pytest.raises(ProtocolError) as raised:
        check_movement(Update("b0", 1.0, ("head",), huge), before, LAYOUT)
    assert str(raised.value).startswith(
        "layer 'head': expected an update of a norm up to 1e+03, got "
    )
    check_movement(
        Update("b0", 1.0, ("head",), {name: array + 1 for name, array in before.items()}),
        before,
        LAYOUT,
    )


def test_what_a_board_writes_cannot_move_the_cursor_of_whoever_reads_it():
    content = genuine(status="sat-out", detail="\x1b[2J" + "x" * 1_000)
    assert understood(content).report.detail == "?[2J" + "x" * 496 + "..."


def test_a_capacity_with_which_a_round_never_ends_is_refused():
    slow = board(flops=5e-324)
    content = genuine_reply(ORDER, LAYOUT, capacity=slow)
    with pytest.raises(ProtocolError, match=r"^with this capacity a round takes inf s$"):
        understood(content)


ENERGY = {"energy_j": 12.5, "source": "ina3221", "scope": "board", "samples": 60, "gaps_s": 0.0}


def with_energy(**changes):
    content = genuine()
    content["energy"] = ConfigRecord({**ENERGY, **changes})
    return content


def test_what_a_board_drew_is_read_and_absent_where_it_does_not_say():
    assert understood(with_energy()).energy == EnergyReport(**ENERGY)
    assert understood(genuine()).energy is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"energy_j": -1.0}, "energy_j: expected 0 or more, got -1.0"),
        ({"samples": -1}, "samples: expected 0 or more, got -1"),
        ({"gaps_s": -0.5}, "gaps_s: expected 0 or more, got -0.5"),
        ({"energy_j": "5"}, "EnergyReport.energy_j: expected float, got '5'"),
        (
            {"source": "model"},
            "energy source: expected one of ina3221, ina219, pmic, rapl, got 'model'",
        ),
        ({"scope": "town"}, "energy scope: expected one of board, processor, rails, got 'town'"),
        ({"more": 1}, "EnergyReport: got the field 'more', which is unknown"),
    ],
    ids=str,
)
def test_energy_that_cannot_be_is_refused(changes, message):
    assert protocol_error(with_energy(**changes)) == message


def test_energy_weighs_in_the_reply_like_everything_else():
    more = understood(with_energy()).envelope_bytes - understood(genuine()).envelope_bytes
    assert more > 0


def test_the_widths_of_literal_packets_are_read_layer_by_layer():
    text = '{"head": [8, 2.5], "body": [2, 0]}'
    assert understood(genuine(widths=text)).widths == {
        "head": LayerWidth(8, 2.5),
        "body": LayerWidth(2, 0.0),
    }


@pytest.mark.parametrize("entry", ["1", "[8]", "[3, 1]", "[8, -1]", '["8", 1]', "[8, 1, 1]"])
def test_widths_that_cannot_be_are_refused(entry):
    assert protocol_error(genuine(widths=f'{{"head": {entry}}}')) == (
        "widths of 'head': expected 2, 4, 8 or 16 bits and a number >= 0, got "
        f"{json.loads(entry)!r}"
    )


def test_widths_of_a_layer_that_was_not_trained_are_refused():
    text = '{"stem": [8, 1]}'
    assert protocol_error(genuine(widths=text)) == (
        f"widths: expected entries of trained layers, got {text!r}"
    )


# ---- positions that both ends draw

MASKS = MaskRule(seed=4, density=0.25)


def over_mask(rule):
    return genuine_reply(ORDER, LAYOUT, mask_rule=rule)


def test_values_of_a_shared_mask_are_read_where_both_ends_know_them_to_be():
    update = understood(over_mask(MASKS), mask_rule=MASKS).update
    positions = MASKS.mask(LAYOUT, ("body", "head"), 300, 3).positions(LAYOUT, ("body", "head"))
    assert sum(map(len, positions.values())) > 60
    for name, own in positions.items():
        assert np.flatnonzero(update.deltas[name]).tolist() == own.tolist()


@pytest.mark.parametrize("rule", [MaskRule(5, 0.25), MaskRule(4, 0.2)], ids=["seed", "density"])
def test_a_mask_that_was_drawn_otherwise_is_refused(rule):
    def checksum(own):
        drawn = own.mask(LAYOUT, ("body", "head"), 300, 3).positions(LAYOUT, ("body", "head"))
        flat = [*drawn["body.w"].tolist(), *(drawn["head.w"] + 200).tolist()]
        return zlib.crc32(struct.pack(f"<{len(flat)}q", *flat))

    assert refusal_with(over_mask(rule), MASKS) == (
        PacketError,
        (
            f"packet: expected shared positions with checksum {checksum(MASKS):08x}, got "
            f"{checksum(rule):08x}; both ends must derive the same mask; compare its round and seed"
        ),
    )


def test_a_packet_with_positions_of_its_own_is_refused_where_a_mask_is_shared():
    assert refusal_with(genuine(), MASKS) == (
        PacketError,
        (
            "packet: expected shared positions, got kind SPARSE; "
            "both ends must agree on whether positions are shared"
        ),
    )


def refusal_with(content, mask_rule):
    with pytest.raises(FedFreezeError) as caught:
        understood(content, mask_rule=mask_rule)
    return type(caught.value), str(caught.value)


MEASURED = {"memory_bytes": 3e8, "download_s": 12.5}


def with_measured(**changes):
    content = genuine()
    content["measured"] = ConfigRecord({**MEASURED, **changes})
    return content


def test_what_a_board_measured_is_read_and_absent_where_it_does_not_say():
    assert understood(with_measured()).measured == MeasuredCost(**MEASURED)
    unknown = {"memory_bytes": -1.0, "download_s": -1.0}
    assert understood(with_measured(**unknown)).measured == MeasuredCost(**unknown)
    assert understood(with_measured(memory_bytes=0.0)).measured.memory_bytes == 0.0
    assert understood(genuine()).measured is None


@pytest.mark.parametrize("field", ["memory_bytes", "download_s"])
@pytest.mark.parametrize("value", [-0.5, -2.0, -1e300, 1e15, 1e300])
def test_a_measurement_that_cannot_be_is_refused(field, value):
    assert protocol_error(with_measured(**{field: value})) == (
        f"{field}: expected 0 or more and below 1e+15, or -1 for what is not known, got {value}"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"memory_bytes": float("nan")},
            "MeasuredCost.memory_bytes: expected a finite number, got nan",
        ),
        (
            {"download_s": float("inf")},
            "MeasuredCost.download_s: expected a finite number, got inf",
        ),
        ({"download_s": "5"}, "MeasuredCost.download_s: expected float, got '5'"),
        ({"more": 1}, "MeasuredCost: got the field 'more', which is unknown"),
    ],
    ids=str,
)
def test_a_measurement_of_something_else_is_refused(changes, message):
    assert protocol_error(with_measured(**changes)) == message


def test_what_was_measured_weighs_the_same_whatever_it_is():
    weights = {
        understood(with_measured(memory_bytes=value, download_s=other)).envelope_bytes
        for value in (-1.0, 0.0, 1 / 3, 9e14)
        for other in (-1.0, 12.5)
    }
    assert len(weights) == 1
    assert weights.pop() > understood(genuine()).envelope_bytes
