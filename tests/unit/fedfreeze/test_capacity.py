"""Capacities: each value known from somewhere, and nothing else accepted."""

import json
import math

import pytest

from fedfreeze.capacity import Capacity, Known
from fedfreeze.errors import ProtocolError

CAPACITY = Capacity(
    Known(1e9, "profile"), Known(2e9, "measured"), Known(3e5, "assumed"), Known(4e6, "profile")
)
FIELDS = "flops_per_s, memory_bytes, uplink_bytes_per_s, downlink_bytes_per_s"


def refusal(function, *args):
    with pytest.raises(ProtocolError) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, -math.inf])
def test_an_unknown_value_is_absent_and_never_0(value):
    assert refusal(Known, value, "measured") == (
        f"a capacity must be finite and above 0, got {value!r}"
    )


def test_a_value_has_one_of_three_sources():
    assert refusal(Known, 1.0, "guessed") == (
        "a capacity's source is one of measured, profile, assumed, got 'guessed'"
    )


def test_a_capacity_comes_back_from_its_json():
    assert Capacity.from_json(json.loads(json.dumps(CAPACITY.to_json()))) == CAPACITY


def test_a_whole_number_will_do():
    data = CAPACITY.to_json() | {"memory_bytes": {"value": 5, "source": "measured"}}
    assert Capacity.from_json(data).memory_bytes == Known(5.0, "measured")


@pytest.mark.parametrize("data", [None, [], "x", {}, CAPACITY.to_json() | {"energy": 1}])
def test_any_other_set_of_fields_is_refused(data):
    message = refusal(Capacity.from_json, data)
    assert message == f"a capacity has the fields {FIELDS}, got {data!r:.200}"


def test_a_missing_field_is_refused():
    data = CAPACITY.to_json()
    del data["memory_bytes"]
    assert refusal(Capacity.from_json, data).startswith(f"a capacity has the fields {FIELDS}, got ")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (5.0, "expected value and source, got 5.0"),
        ({"value": 5.0}, "expected value and source, got {'value': 5.0}"),
        ({"value": "5", "source": "profile"}, "expected a number, got '5'"),
        ({"value": True, "source": "profile"}, "expected a number, got True"),
        ({"value": None, "source": "profile"}, "expected a number, got None"),
    ],
)
def test_a_field_of_another_shape_is_refused_by_name(entry, problem):
    data = CAPACITY.to_json() | {"memory_bytes": entry}
    assert refusal(Capacity.from_json, data) == f"capacity.memory_bytes: {problem}"


@pytest.mark.parametrize("source", [["profile"], None, {}])
def test_a_source_of_another_type_is_refused(source):
    data = CAPACITY.to_json() | {"memory_bytes": {"value": 1.0, "source": source}}
    assert refusal(Capacity.from_json, data) == (
        f"a capacity's source is one of measured, profile, assumed, got {source!r}"
    )
