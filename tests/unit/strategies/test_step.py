import numpy as np
import pytest

from strategies.aggregation.mean import Update
from strategies.aggregation.step import global_step, l2_norm
from strategies.methods.fedavg import FedAvg, FedAvgSettings
from tests.unit.strategies.samples import constant, stack, with_buffers


def fedavg(layout, rate):
    return FedAvg(FedAvgSettings(server_learning_rate=rate), layout)


def update(layout, device_id, weight, layers, value):
    deltas = {
        t.name: np.full(t.shape, value, np.float32)
        for name in layers
        for t in layout[name].tensors
        if t.is_float
    }
    return Update(device_id, weight, tuple(layers), deltas)


def test_the_step_is_the_weighted_mean_times_the_server_learning_rate():
    layout = stack(a=4, b=1)
    updates = [update(layout, "A", 1, ["a", "b"], 1.0), update(layout, "B", 3, ["a"], 2.0)]
    step = global_step(layout, updates, fedavg(layout, 2.0), constant(layout, 3.0))
    assert step.steps["a"]["a.w"].tolist() == [3.5] * 4
    assert step.steps["b"]["b.w"].tolist() == [2.0]
    assert step.norm == {"a": 7.0, "b": 2.0}
    assert step.movement == pytest.approx({"a": 7 / 6, "b": 2 / 3})


def test_buffers_take_the_mean_whatever_the_server_learning_rate():
    layout = with_buffers()
    step = global_step(
        layout, [update(layout, "A", 1, ["norm"], 1.0)], fedavg(layout, 10.0), constant(layout, 1)
    )
    assert step.steps["norm"]["norm.weight"].tolist() == [[10, 10], [10, 10]]
    assert step.steps["norm"]["norm.scale"].tolist() == 10
    assert step.steps["norm"]["norm.mean"].tolist() == [1, 1]


def test_norms_speak_of_parameters_alone():
    layout = with_buffers()
    step = global_step(
        layout, [update(layout, "A", 1, ["norm"], 1.0)], fedavg(layout, 1.0), constant(layout, 2)
    )
    assert step.norm["norm"] == pytest.approx(5**0.5)
    assert step.movement["norm"] == pytest.approx(0.5)


def test_a_layer_of_zeros_moves_by_a_finite_number():
    layout = stack(a=4)
    step = global_step(
        layout, [update(layout, "A", 1, ["a"], 1.0)], fedavg(layout, 1.0), constant(layout, 0.0)
    )
    assert step.movement == {"a": pytest.approx(2e12)}


def test_a_layer_that_nobody_trained_has_neither_step_nor_movement():
    layout = stack(a=4, b=1)
    step = global_step(
        layout, [update(layout, "A", 1, ["b"], 1.0)], fedavg(layout, 1.0), constant(layout, 1.0)
    )
    assert set(step.steps) == set(step.norm) == set(step.movement) == {"b"}


def test_a_norm_does_not_overflow_in_the_type_of_its_arrays():
    assert l2_norm([np.array([3e30], np.float32), np.array([4e30], np.float32)]) == pytest.approx(
        5e30
    )
