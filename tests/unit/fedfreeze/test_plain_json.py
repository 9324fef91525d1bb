import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfreeze import plain_json

NAN, INF = float("nan"), float("inf")
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def refuse(constant):
    raise AssertionError(constant)


def numbers(value):
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from numbers(member)
    elif isinstance(value, float):
        yield value


@given(VALUES)
def test_every_value_is_written_as_json_that_any_reader_takes(value):
    read = json.loads(plain_json.text(value), parse_constant=refuse)
    assert all(math.isfinite(number) for number in numbers(read))


@given(VALUES)
def test_python_s_own_json_is_read_without_what_is_not_finite(value):
    assert plain_json.parse(json.dumps(value)) == plain_json.finite(value)


def test_finite_values_are_left_as_they_are():
    value = {"a": [1, 2.5, None, True, "NaN"], "b": {"c": -1e308}}
    assert plain_json.parse(plain_json.text(value)) == value


def test_a_member_is_left_out_and_an_element_keeps_its_place():
    value = {"loss": NAN, "scores": [0.5, -INF, 1], "inner": ({"x": INF}, 10**400)}
    assert plain_json.finite(value) == {"scores": [0.5, None, 1], "inner": [{}, None]}


@pytest.mark.parametrize("text", ["", "{", "nan", "[" * 100_000, '{"a":' * 600 + "1" + "}" * 600])
def test_what_is_no_json_or_nested_too_deeply_is_one_kind_of_error(text):
    with pytest.raises(ValueError):  # noqa: PT011  # the words are Python's own
        plain_json.parse(text)
