"""Collaborative gains by hand, on layers of one or two values."""

import math

import numpy as np
import pytest

from strategies.aggregation.alignment import collaborative_gains
from strategies.aggregation.mean import Update
from tests.unit.strategies.samples import stack, with_buffers

LAYOUT = stack(a=2, b=1)


def update(device_id, weight=1.0, **layers):
    deltas = {f"{name}.w": np.array(values, np.float32) for name, values in layers.items()}
    return Update(device_id, weight, tuple(layers), deltas)


def gains(*updates):
    return collaborative_gains(LAYOUT, updates)


def test_updates_that_agree_bring_as_much_as_they_are_large():
    found = gains(update("x", a=[3, 0]), update("y", a=[2, 0]), update("z", a=[1, 0]))
    assert found == pytest.approx({"x": 1.5, "y": 1.0, "z": 0.5})


def test_the_cosine_is_with_what_the_others_did_by_their_weights():
    """Beside x, the others' mean is (3 * (0, 2) + 1 * (4, 0)) / 4 = (1, 1.5)."""
    found = gains(update("x", 1, a=[2, 0]), update("y", 3, a=[0, 2]), update("z", 1, a=[4, 0]))
    assert found["x"] == pytest.approx(1 / math.hypot(1, 1.5) * (2 / 4))
    # y outweighs the others together: their mean is ((2, 0) + (4, 0)) / 2.
    assert found["y"] == pytest.approx(0.0)
    # z: (1 * (2, 0) + 3 * (0, 2)) / 4, and its size is the median.
    assert found["z"] == pytest.approx(0.5 / math.hypot(0.5, 1.5))


def test_an_update_against_all_others_brings_less_than_nothing():
    found = gains(update("x", a=[-1, 0]), update("y", a=[1, 0]), update("z", a=[1, 0]))
    assert found["x"] == pytest.approx(-1.0)


def test_size_counts_twice_the_median_at_most():
    found = gains(update("x", a=[1e6, 0]), update("y", a=[1, 0]), update("z", a=[1, 0]))
    assert found == pytest.approx({"x": 2.0, "y": 1.0, "z": 1.0})


def test_a_weight_beyond_all_others_leaves_finite_gains():
    found = gains(update("x", 2.0**63, a=[1, 1]), update("y", a=[1, 0]), update("z", a=[1, 0]))
    assert found["x"] == pytest.approx(2 / math.sqrt(2))
    assert found["y"] == pytest.approx(1 / math.sqrt(2))


def test_a_layer_that_nobody_else_trained_makes_an_update_larger_but_not_better_aligned():
    found = gains(update("x", a=[3, 0], b=[4]), update("y", a=[5, 0]), update("z", a=[5, 0]))
    assert found["x"] == pytest.approx(1.0)


def test_who_trained_what_nobody_else_did_has_no_gain():
    assert gains(update("x", b=[1]), update("y", a=[1, 0]), update("z", a=[1, 0])) == (
        pytest.approx({"y": 1.0, "z": 1.0})
    )
    assert gains(update("x", a=[1, 0])) == {}
    assert gains() == {}


def test_an_update_that_moves_nothing_brings_nothing():
    found = gains(update("x", a=[0, 0]), update("y", a=[1, 0]), update("z", a=[0, 0]))
    assert found == {"x": 0.0, "y": 0.0, "z": 0.0}


def test_buffers_are_no_part_of_it():
    layout = with_buffers()
    updates = [
        Update(
            name,
            1.0,
            ("norm",),
            {
                "norm.weight": np.eye(2, dtype=np.float32),
                "norm.scale": np.float32(0) * np.ones(()),
                "norm.mean": np.full(2, mean, np.float32),
            },
        )
        for name, mean in (("x", 5.0), ("y", -5.0))
    ]
    assert collaborative_gains(layout, updates) == pytest.approx({"x": 1.0, "y": 1.0})
