"""The four messages as Flower records, and what is refused."""

import math
from dataclasses import fields, replace

import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedfreeze.errors import ProtocolError
from fedfreeze.messages import (
    ResourceQuery,
    ResourceReport,
    TrainOrder,
    TrainReport,
    check_protocol,
    from_json,
    packed,
    unpacked,
)

VALUES = {"int": 7, "float": 0.5, "str": "text"}


def example(kind):
    return kind(**{f.name: VALUES[str(f.type)] for f in fields(kind)})


MESSAGES = [example(kind) for kind in (ResourceQuery, ResourceReport, TrainOrder, TrainReport)]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_comes_back_as_it_was_sent(message):
    record = message.to_record()
    assert isinstance(record, ConfigRecord)
    assert type(message).from_record(ConfigRecord.inflate(record.deflate())) == message


def refusal(kind, record):
    with pytest.raises(ProtocolError) as caught:
        kind.from_record(record)
    return str(caught.value)


@pytest.mark.parametrize("message", MESSAGES)
def test_each_field_must_be_there_and_of_its_type(message):
    kind = type(message)
    name = kind.__name__
    for field in fields(message):
        record = message.to_record()
        del record[field.name]
        assert refusal(kind, record) == (
            f"{name}: expected the field {field.name!r}, which is missing"
        )
        wrong = 7 if field.type == "str" else "7"
        for value in (wrong, True, [7], b"7"):
            record[field.name] = value
            assert refusal(kind, record) == (
                f"{name}.{field.name}: expected {field.type}, got {value!r}"
            )


def test_an_unknown_field_is_refused_by_name():
    record = MESSAGES[0].to_record()
    record["extra"] = 1
    assert refusal(ResourceQuery, record) == (
        "ResourceQuery: got the field 'extra', which is unknown"
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_must_be_finite(value):
    record = replace(MESSAGES[3], train_loss=value).to_record()
    assert refusal(TrainReport, record) == (
        f"TrainReport.train_loss: expected a finite number, got {value}"
    )


def test_a_whole_number_is_good_enough_for_a_float():
    assert TrainReport.from_record(replace(MESSAGES[3], train_s=3).to_record()).train_s == 3


@pytest.mark.parametrize(
    ("record", "what"), [(None, "NoneType"), (ArrayRecord({}), "ArrayRecord"), ({}, "dict")]
)
def test_anything_but_a_config_record_is_refused(record, what):
    assert refusal(TrainOrder, record) == f"TrainOrder: expected a ConfigRecord, got {what}"


def test_a_long_text_is_cut_in_the_message():
    record = MESSAGES[0].to_record()
    record["round_number"] = "x" * 1_000
    assert len(refusal(ResourceQuery, record)) < 120


# ---- packed bytes


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 50])
def test_bytes_travel_as_one_array_and_come_back(data):
    content = RecordDict({"packet": packed(data, "f.v1")})
    assert len(content["packet"]) == 1
    assert unpacked(content, "packet", "f.v1") == data


def unpack_refusal(content):
    with pytest.raises(ProtocolError) as caught:
        unpacked(RecordDict(content), "packet", "f.v1")
    return str(caught.value)


def test_bytes_of_another_format_are_refused():
    assert unpack_refusal({"packet": packed(b"x", "f.v2")}) == (
        "'packet': expected the format f.v1, got 'f.v2'"
    )


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"packet": ConfigRecord({})},
        {"packet": ArrayRecord({})},
        {"packet": ArrayRecord({"other": Array("uint8", (1,), "f.v1", b"x")})},
        {
            "packet": ArrayRecord(
                {name: Array("uint8", (1,), "f.v1", b"x") for name in ("packed", "more")}
            )
        },
    ],
)
def test_anything_but_one_packed_array_is_refused(content):
    assert unpack_refusal(content).startswith("expected one packed array under 'packet', got ")


# ---- JSON that arrived


def test_json_is_read():
    assert from_json("plan", '{"a": [1, -2.5, null]}') == {"a": [1, -2.5, None]}


@pytest.mark.parametrize("digits", [20, 400, 5_000])
def test_a_number_that_no_field_needs_cannot_raise_later(digits):
    value = from_json("plan", "9" * digits)
    assert isinstance(value, float)


@pytest.mark.parametrize("text", ["", "{", "nope", "[" * 100_000])
def test_what_is_no_json_is_refused_by_name(text):
    with pytest.raises(ProtocolError) as caught:
        from_json("plan", text)
    assert str(caught.value) == f"plan: expected JSON, got {text!r:.80}"


def test_another_protocol_is_refused_with_both_versions():
    check_protocol(1)
    with pytest.raises(ProtocolError) as caught:
        check_protocol(2)
    assert str(caught.value) == (
        "expected protocol 1, got 2; install the same release of FedFreeze on the server and on "
        "every board"
    )
