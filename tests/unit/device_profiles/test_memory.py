"""Memory of a round against sums worked out by hand for three layers."""

import pytest

from device_profiles.memory import (
    ACTIVATION_FACTOR,
    LIBRARY_BYTES,
    local_training_bytes,
    round_phases,
    training_memory_bytes,
    training_phases,
)
from fedfreeze.errors import LayoutError
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec


def layer(name, values, kept, *, spared=0, transient=0, forward=0, buffers=0):
    """``values`` float parameters; costs in bytes of an example."""
    tensors = [TensorSpec(f"{name}.w", (values,), "float32")]
    if buffers:
        tensors.append(TensorSpec(f"{name}.mean", (buffers,), "float32", "buffer"))
    costs = LayerCosts(
        activation_bytes=kept, spared_bytes=spared, transient_bytes=transient, forward_bytes=forward
    )
    return Layer(name, tuple(tensors), costs)


THREE = Layout(
    "three",
    (
        layer("a", 10, 1000, transient=500, forward=1500),
        layer("b", 100, 200, spared=50, transient=900, forward=700),
        layer("c", 20, 30, spared=30, transient=20, forward=300, buffers=5),
    ),
)
STATE = 4 * (10 + 100 + 20 + 5)


def phase(name, shallowest, batch=1, slots=0, *, phases=round_phases):
    (found,) = (p for p in phases(THREE, shallowest, batch, slots) if p.name == name)
    return found


def training(name, shallowest, batch=1, slots=0):
    return phase(name, shallowest, batch, slots, phases=training_phases)


@pytest.mark.parametrize(
    ("shallowest", "activations"),
    [
        # Kept so far, without what only the layer's own weights need, and its transient:
        # a 1000 + 500, b 1150 + 900, c 1150 + 20.
        (0, 2050),
        # b 150 + 900, c 150 + 20; but the forward pass of a holds 1500.
        (1, 1500),
        # c 0 + 20.
        (2, 1500),
        (3, 1500),
    ],
)
def test_the_peak_of_activations_is_that_of_the_worst_layer(shallowest, activations):
    found = training("step", shallowest, batch=8)
    assert found.fixed_bytes == pytest.approx(STATE + 8 * activations * ACTIVATION_FACTOR)


@pytest.mark.parametrize(("slots", "copies"), [(0, 1), (1, 2), (2, 3)])
def test_a_trained_layer_adds_gradient_optimizer_state_and_what_its_weights_need(slots, copies):
    found = training("step", 0, batch=8, slots=slots)
    spared = [0, 50 * 8 * ACTIVATION_FACTOR, 30 * 8 * ACTIVATION_FACTOR]
    assert found.layer_bytes == pytest.approx(
        [copies * 40 + spared[0], copies * 400 + spared[1], copies * 80 + spared[2]]
    )


def test_the_optimizer_works_on_two_copies_of_the_largest_tensor_it_reaches():
    assert training("optimizer", 0, slots=1).fixed_bytes == STATE + 2 * 400
    assert training("optimizer", 2, slots=1).fixed_bytes == STATE + 2 * 80
    assert training("optimizer", 3, slots=1).fixed_bytes == STATE
    assert training("optimizer", 0, slots=1).layer_bytes == (80, 800, 160)


def test_after_training_the_update_is_made_codec_and_store_work_on_copies():
    assert training("delta", 0, slots=1).bytes_of([1, 2]) == STATE + 2 * (400 + 80) + (400 + 100)
    # Buffers travel, so they are in every copy of an update.
    assert phase("encode", 0).bytes_of([1, 2]) == 3 * STATE + 9 * (400 + 100)
    assert phase("store", 0).bytes_of([1, 2]) == 5 * STATE + 3 * (400 + 100)


def test_a_board_holds_three_models_and_the_trained_layers_residuals_twice_all_along():
    for alone in training_phases(THREE, 0, 4, 1):
        assert phase(alone.name, 0, batch=4, slots=1).bytes_of([1, 2]) == pytest.approx(
            alone.bytes_of([1, 2]) + 3 * STATE + 2 * (400 + 100)
        )


def test_a_counter_is_part_of_the_model_and_of_no_residual():
    counted = TensorSpec("c.count", (), "int64", "buffer")
    layers = (*THREE.layers[:2], Layer("c", (*THREE.layers[2].tensors, counted)))
    (encode,) = (p for p in round_phases(Layout("counted", layers), 0, 1, 0) if p.name == "encode")
    assert encode.bytes_of([0, 1, 2]) == phase("encode", 0).bytes_of([0, 1, 2]) + 3 * 8


def test_the_memory_of_a_round_is_that_of_its_worst_phase():
    for trained in (["a", "b", "c"], ["b"], ["c"], ["a", "c"]):
        places = [THREE.names.index(name) for name in trained]
        worst = max(p.bytes_of(places) for p in round_phases(THREE, min(places), 4, 1))
        assert training_memory_bytes(THREE, trained, 4, 1) == LIBRARY_BYTES + worst
        local = max(p.bytes_of(places) for p in training_phases(THREE, min(places), 4, 1))
        assert local_training_bytes(THREE, trained, 4, 1) == LIBRARY_BYTES + local


def test_with_small_batches_the_codec_is_the_peak_and_with_large_ones_the_step():
    def worst(batch):
        return max(round_phases(THREE, 0, batch, 0), key=lambda p: p.bytes_of([0, 1, 2])).name

    assert (worst(0), worst(64)) == ("encode", "step")


def test_a_frozen_suffix_spares_gradients_and_no_activation_that_others_need():
    layout = Layout("relu", tuple(layer(name, 10, 1e6, transient=5e5) for name in "abcd"))
    full = training_memory_bytes(layout, ["a", "b", "c", "d"], 32, 0)
    suffix = training_memory_bytes(layout, ["a", "b"], 32, 0)
    prefix = training_memory_bytes(layout, ["c", "d"], 32, 0)
    assert full - suffix == pytest.approx(2 * 3 * 40)
    assert full - prefix == pytest.approx(2 * 3 * 40 + 2 * 32e6 * ACTIVATION_FACTOR)


def test_nothing_trained_runs_forward_all_the_same():
    assert local_training_bytes(THREE, [], 8, 0) == pytest.approx(
        LIBRARY_BYTES + STATE + 8 * 1500 * ACTIVATION_FACTOR
    )


def test_an_unknown_layer_is_refused():
    with pytest.raises(LayoutError) as caught:
        training_memory_bytes(THREE, ["d"], 1, 0)
    assert str(caught.value) == "no layer 'd'; the layers are a, b, c"
