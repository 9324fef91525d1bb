"""Costs against figures worked out by hand for six equal linear layers with ReLU."""

import pytest

from device_profiles.board import load_board
from device_profiles.cost import (
    TRANSIENT_BYTES,
    modelled_energy_j,
    plan_cost,
    training_flops,
    training_memory_bytes,
)
from fedfreeze.capacity import Capacity, Known
from fedfreeze.errors import LayoutError
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from fedfreeze.plan import PlanCost, Stage

WIDTH = 256
F = 2.0 * WIDTH * WIDTH
UNIT_BYTES = 4 * WIDTH  # one activation vector
LAYER_BYTES = 4 * (WIDTH * WIDTH + WIDTH)


def six() -> Layout:
    """Each layer keeps its input, the last one also its ReLU's output; data needs no gradient."""
    return Layout(
        "six",
        tuple(
            Layer(
                name=f"l{place}",
                tensors=(
                    TensorSpec(f"l{place}.weight", (WIDTH, WIDTH), "float32"),
                    TensorSpec(f"l{place}.bias", (WIDTH,), "float32"),
                ),
                costs=LayerCosts(F, F if place else 0.0, F, UNIT_BYTES * (2 if place == 5 else 1)),
            )
            for place in range(6)
        ),
    )


def trained_without(*frozen: int) -> list[str]:
    return [f"l{place}" for place in range(6) if place not in frozen]


# 6 forward passes, one gradient of the input for each layer above the shallowest trained one, one
# gradient of the weights for each trained layer: in units of F.
@pytest.mark.parametrize(
    ("frozen", "flops", "ratio"),
    [
        ((), 17, 1.000),
        ((0, 1, 2), 11, 0.647),
        ((0, 1, 2, 3, 4), 7, 0.412),
        ((3, 4, 5), 14, 0.824),
        ((2, 3), 15, 0.882),
        ((0, 1, 2, 3, 4, 5), 6, 0.353),
    ],
)
def test_training_flops(frozen, flops, ratio):
    given = training_flops(six(), trained_without(*frozen), examples=3)
    assert given == 3 * flops * F
    assert given / training_flops(six(), six().names, examples=3) == pytest.approx(ratio, abs=5e-4)


@pytest.mark.parametrize(
    ("frozen", "units", "ratio"),
    [
        ((), 7, 1.000),
        ((0, 1, 2), 4, 0.571),
        ((0, 1, 2, 3, 4), 2, 0.286),
        ((3, 4, 5), 7, 1.000),
        ((2, 3), 7, 1.000),
        ((0, 1, 2, 3, 4, 5), 0, 0.0),
    ],
)
def test_only_a_frozen_prefix_spares_activations(frozen, units, ratio):
    trained = trained_without(*frozen)

    def activations(names):
        with_batch = training_memory_bytes(six(), names, 8, optimizer_slots=0)
        return with_batch - training_memory_bytes(six(), names, 0, optimizer_slots=0)

    assert activations(trained) == pytest.approx(8 * units * UNIT_BYTES * 1.1)
    assert activations(trained) / activations(six().names) == pytest.approx(ratio, abs=5e-4)


@pytest.mark.parametrize(("slots", "copies"), [(0, 1), (1, 2), (2, 3)])
def test_gradient_and_optimizer_state_are_counted_for_trained_layers_only(slots, copies):
    # Model, published copy and residual of six layers; gradient and slots of two.
    memory = training_memory_bytes(six(), ["l4", "l5"], 0, optimizer_slots=slots)
    assert memory == (3 * 6 + copies * 2) * LAYER_BYTES + TRANSIENT_BYTES


def test_buffers_count_as_weights_but_not_as_residual():
    bare = Layer("norm", (TensorSpec("norm.weight", (10,), "float32"),))
    buffered = Layer("norm", (*bare.tensors, TensorSpec("norm.mean", (10,), "float32", "buffer")))
    with_buffer, without = (
        training_memory_bytes(Layout("m", (layer,)), ["norm"], 0, 0) for layer in (buffered, bare)
    )
    assert with_buffer - without == 2 * 40


def test_an_unknown_layer_is_refused():
    with pytest.raises(LayoutError) as caught:
        training_flops(six(), ["l9"], 1)
    assert str(caught.value) == "no layer 'l9'; the layers are l0, l1, l2, l3, l4, l5"


CAPACITY = Capacity(
    flops_per_s=Known(1e9, "profile"),
    memory_bytes=Known(64e6, "profile"),
    uplink_bytes_per_s=Known(1e3, "profile"),
    downlink_bytes_per_s=Known(4e3, "profile"),
)


def cost(*stages: Stage) -> PlanCost:
    return plan_cost(
        six(),
        stages,
        examples=100,
        epochs=2,
        batch_size=8,
        optimizer_slots=1,
        capacity=CAPACITY,
        download_bytes=8e3,
        upload_bytes=5e3,
    )


def test_a_plan_costs_what_its_parts_cost():
    given = cost(Stage(1.0, six().names))
    assert given.modelled_download_s == 2.0
    assert given.modelled_upload_s == 5.0
    assert given.modelled_compute_s == pytest.approx(2 * 100 * 17 * F / 1e9)
    assert given.modelled_total_s == pytest.approx(7.0 + 200 * 17 * F / 1e9)
    assert given.modelled_memory_bytes == training_memory_bytes(six(), six().names, 8, 1)


def test_stages_share_the_steps_and_the_memory_is_that_of_all_of_them():
    given = cost(Stage(0.25, ("l0", "l1", "l2")), Stage(0.75, ("l4", "l5")))
    # First stage 6 + 5 + 3, second 6 + 1 + 2.
    assert given.modelled_compute_s == pytest.approx(200 * (0.25 * 14 + 0.75 * 9) * F / 1e9)
    together = ["l0", "l1", "l2", "l4", "l5"]
    assert given.modelled_memory_bytes == training_memory_bytes(six(), together, 8, 1)


def test_energy_adds_work_transfers_and_the_wait_for_the_others():
    power = load_board("rpi-4b-4gb").power
    parts = PlanCost(1.0, 10.0, 2.0, 0.0)
    worked = 3.0 * power.radio.value + 10.0 * power.compute.value
    board = load_board("rpi-4b-4gb")
    assert modelled_energy_j(board, parts, round_s=20.0) == pytest.approx(
        worked + 7.0 * power.idle.value
    )
    assert modelled_energy_j(board, parts, round_s=5.0) == pytest.approx(worked)


@pytest.mark.parametrize(
    ("trained", "flops"),
    [
        # All forward (9), dX of what is above, dX' of the shallowest, dW of the trained.
        (("a", "b", "c"), 9 + (3 + 2) + 0 + 9),
        (("b", "c"), 9 + 2 + 2 + 7),
        (("b",), 9 + 2 + 2 + 3),
        (("c",), 9 + 0 + 1 + 4),
        (("a",), 9 + (3 + 2) + 0 + 2),
    ],
)
def test_the_shallowest_layer_pays_for_the_gradient_within_itself(trained, flops):
    layout = Layout(
        "blocks",
        tuple(
            Layer(
                name,
                (TensorSpec(f"{name}.w", (1,), "float32"),),
                LayerCosts(f, dx, dw, inner_grad_flops=inner),
            )
            for name, f, dx, dw, inner in [("a", 2, 0, 2, 0), ("b", 3, 3, 3, 2), ("c", 4, 2, 4, 1)]
        ),
    )
    assert training_flops(layout, trained, examples=5) == 5 * flops
