import itertools

import numpy as np
import pytest

from fedfreeze.layout import Layer, Layout, TensorSpec
from strategies.aggregation.mean import Update, weighted_means
from tests.unit.strategies.samples import with_buffers

ABC = Layout(
    "abc", tuple(Layer(n, (TensorSpec(f"{n}.w", (2,), "float32"),)) for n in ("a", "b", "c"))
)


def update(device_id, weight, **deltas):
    arrays = {f"{name}.w": np.array(values, np.float32) for name, values in deltas.items()}
    return Update(device_id, weight, tuple(deltas), arrays)


def means(*updates, layout=ABC):
    return {
        tensor: mean
        for _, tensors in weighted_means(layout, updates)
        for tensor, mean in tensors.items()
    }


def test_each_layer_is_divided_by_the_weights_of_those_who_trained_it():
    merged = means(update("A", 30, a=(1, 2), b=(4, 8)), update("B", 10, b=(0, 4), c=(5, 6)))
    assert {name: mean.tolist() for name, mean in merged.items()} == {
        "a.w": [1, 2],
        "b.w": [3, 7],
        "c.w": [5, 6],
    }


def test_layers_come_in_forward_order_and_only_those_that_somebody_trained():
    merged = weighted_means(ABC, [update("B", 1, c=(1, 1)), update("A", 1, a=(1, 1))])
    assert [name for name, _ in merged] == ["a", "c"]


def test_nobody_trained_anything_gives_no_mean():
    assert means() == {}
    assert means(Update("A", 1.0, (), {})) == {}


def test_a_coordinate_that_was_not_sent_counts_as_zero():
    """Top-1 of (5, 1) and of (1, 4): a count per coordinate would give (5, 4)."""
    merged = means(update("A", 1, a=(5, 0)), update("B", 1, a=(0, 4)))
    assert merged["a.w"].tolist() == [2.5, 2.0]


def test_a_packet_that_covers_no_layer_dilutes_nobody():
    merged = means(update("A", 100, a=(1, 1)), Update("B", 300, (), {}))
    assert merged["a.w"].tolist() == [1, 1]


def test_the_order_of_arrival_does_not_change_a_bit():
    updates = [
        update(name, weight, a=(value, value / 3))
        for name, weight, value in [("A", 3, 1e8), ("B", 7, -1e-7), ("C", 11, 0.1), ("D", 2, -1e8)]
    ]
    seen = {means(*order)["a.w"].tobytes() for order in itertools.permutations(updates)}
    assert len(seen) == 1


def test_sums_are_formed_in_float64():
    """In float32, 1e8 + 1 - 1e8 is 0."""
    merged = means(
        update("A", 1, a=(1e8, 0)), update("B", 1, a=(1, 0)), update("C", 1, a=(-1e8, 0))
    )
    assert merged["a.w"].dtype == np.float64
    assert merged["a.w"][0] == pytest.approx(1 / 3, rel=1e-12)


def test_a_scalar_stays_an_array_and_integers_are_left_to_the_server():
    layout = with_buffers()
    deltas = {t.name: np.ones(t.shape, np.float32) for t in layout["norm"].tensors if t.is_float}
    merged = means(Update("A", 2.0, ("norm",), deltas), layout=layout)
    assert set(merged) == {"norm.weight", "norm.scale", "norm.mean"}
    assert isinstance(merged["norm.scale"], np.ndarray)
    assert {name: mean.shape for name, mean in merged.items()} == {
        "norm.weight": (2, 2),
        "norm.scale": (),
        "norm.mean": (2,),
    }


def test_constants_are_left_to_the_server():
    tensors = (TensorSpec("w", (2,), "float32"), TensorSpec("c", (2,), "float32", "constant"))
    layout = Layout("m", (Layer("all", tensors),))
    merged = means(Update("A", 1.0, ("all",), {"w": np.ones(2, np.float32)}), layout=layout)
    assert set(merged) == {"w"}
