import math

import numpy as np

from compression import LayerResidual, summary
from fedfreeze.layout import Layer, Layout, TensorSpec

LAYOUT = Layout(
    "m",
    (
        Layer(
            "a",
            (TensorSpec("a.w", (2, 2), "float32"), TensorSpec("a.m", (1,), "float32", "buffer")),
        ),
        Layer("b", (TensorSpec("b.w", (2,), "float32"),)),
        Layer("c", (TensorSpec("c.w", (0,), "float32"),)),
    ),
)


def test_a_layer_has_the_norm_and_the_largest_value_of_all_its_tensors():
    residual = {"a.w": np.float32([[1, -2], [2, 0]]), "a.m": np.float32([-4])}
    assert summary(residual, LAYOUT, {"a": 3}) == {"a": LayerResidual(5.0, 4.0, 3)}


def test_a_layer_of_which_nothing_is_left_is_absent_and_an_unknown_age_is_none():
    residual = {"c.w": np.zeros(0, np.float32), "b.w": np.zeros(2, np.float32), "other": np.ones(1)}
    assert summary(residual, LAYOUT, {}) == {
        "b": LayerResidual(0.0, 0.0, None),
        "c": LayerResidual(0.0, 0.0, None),
    }


def test_squares_that_float32_cannot_hold_do_not_overflow():
    residual = {"b.w": np.float32([3e38, -3e38])}
    found = summary(residual, LAYOUT, {})["b"]
    assert math.isclose(found.norm, math.sqrt(2) * 3e38, rel_tol=1e-6)
