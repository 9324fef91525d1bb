import numpy as np
import pytest

from compression import value_ranges
from fedfreeze.layout import Layer, Layout, TensorSpec

LAYOUT = Layout(
    "two",
    (
        Layer(
            "a",
            (
                TensorSpec("a.w", (2,), "float32"),
                TensorSpec("a.b", (1,), "float32"),
                TensorSpec("a.mean", (1,), "float32", "buffer"),
                TensorSpec("a.count", (), "int64"),
            ),
        ),
        Layer("b", (TensorSpec("b.w", (0,), "float32"),)),
    ),
)


def after(before, *values, layers=("a",)):
    update = {
        "a.w": np.array(values[:2], np.float32),
        "a.b": np.array(values[2:], np.float32),
        "a.mean": np.array([1e9], np.float32),
        "b.w": np.zeros(0, np.float32),
    }
    return value_ranges(before, update, LAYOUT, layers)


def test_the_range_of_a_layer_is_its_largest_value_at_first():
    assert after({}, 1, -8, 3) == {"a": 8.0}


def test_a_range_falls_off_by_a_tenth_a_round_and_rises_at_once():
    ranges, found = {}, []
    for largest in (8, 1, 1, 7, 0.5):
        ranges = after(ranges, 0.25, -largest, 0)
        found.append(ranges["a"])
    # 8, then .9 x 8 and .9 x 7.2, a value of 7 above .9 x 6.48, and .9 x 7.
    assert found == pytest.approx([8, 7.2, 6.48, 7, 6.3])


def test_a_layer_that_is_not_trained_keeps_its_range_and_one_that_is_gone_has_none():
    assert after({"a": 5.0, "gone": 1.0}, 1, 1, 1, layers=()) == {"a": 5.0}


def test_a_layer_without_values_has_a_range_of_0():
    assert after({}, 1, 1, 1, layers=("b",)) == {"b": 0.0}
