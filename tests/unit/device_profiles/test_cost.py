"""Costs against figures worked out by hand for six equal linear layers with ReLU."""

from dataclasses import replace

import pytest

from device_profiles.board import load_board
from device_profiles.cost import (
    LINK_OVERHEAD,
    ROUND_TRIP_S,
    modelled_energy_j,
    plan_cost,
    training_flops,
    training_memory_bytes,
)
from device_profiles.memory import ACTIVATION_FACTOR, training_phases
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
        places = [six().names.index(name) for name in names]
        shallowest = min(places, default=len(six()))
        (step,) = (p for p in training_phases(six(), shallowest, 8, 0) if p.name == "step")
        (empty,) = (p for p in training_phases(six(), shallowest, 0, 0) if p.name == "step")
        return step.fixed_bytes - empty.fixed_bytes

    assert activations(trained) == pytest.approx(8 * units * UNIT_BYTES * ACTIVATION_FACTOR)
    assert activations(trained) / activations(six().names) == pytest.approx(ratio, abs=5e-4)


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


def cost(*stages: Stage, **more) -> PlanCost:
    given = {
        "examples": 100,
        "epochs": 2,
        "batch_size": 8,
        "optimizer_slots": 1,
        "capacity": CAPACITY,
        "download_bytes": 8e3,
        "upload_bytes": 5e3,
    }
    return plan_cost(six(), stages, **(given | more))


def test_a_plan_costs_what_its_parts_cost():
    given = cost(Stage(1.0, six().names))
    assert given.modelled_download_s == 2.0
    assert given.modelled_upload_s == 5.0
    assert given.modelled_compute_s == pytest.approx(2 * 100 * 17 * F / 1e9)
    assert given.modelled_total_s == pytest.approx(7.0 + 200 * 17 * F / 1e9)
    assert given.modelled_memory_bytes == training_memory_bytes(six(), six().names, 8, 1)


def test_a_simulation_has_no_overhead_and_no_one_asked_for_joules():
    given = cost(Stage(1.0, six().names))
    assert (given.modelled_upload_bytes, given.modelled_energy_j) == (None, None)
    assert given == cost(Stage(1.0, six().names), link_overhead=0.0, round_trip_s=0.0)


def test_on_a_real_link_bytes_take_longer_and_each_round_waits_once():
    bare = cost(Stage(1.0, six().names))
    real = cost(Stage(1.0, six().names), link_overhead=LINK_OVERHEAD, round_trip_s=ROUND_TRIP_S)
    assert real.modelled_download_s == pytest.approx(2.0 * 1.048 + 4.0)
    assert real.modelled_upload_s == pytest.approx(5.0 * 1.048)
    assert real.modelled_compute_s == bare.modelled_compute_s
    assert real.modelled_memory_bytes == bare.modelled_memory_bytes


def test_25_mb_up_take_what_a_shaped_link_of_1_mb_a_second_took():
    """30.5 s with TLS, of which 4 to 5 s are polls and back-off."""
    fast = replace(CAPACITY, uplink_bytes_per_s=Known(1e6, "measured"))
    sent = cost(
        Stage(1.0, six().names),
        capacity=fast,
        upload_bytes=25e6,
        download_bytes=0.0,
        link_overhead=LINK_OVERHEAD,
        round_trip_s=ROUND_TRIP_S,
    )
    assert sent.modelled_download_s + sent.modelled_upload_s == pytest.approx(30.5, abs=0.5)


def test_with_its_power_a_board_is_told_joules_and_bytes():
    power = load_board("rpi-4b-4gb").power
    given = cost(Stage(1.0, six().names), link_overhead=0.5, round_trip_s=3.0, power=power)
    assert given.modelled_upload_bytes == 7.5e3
    transfers_s = 1.5 * (2.0 + 5.0)
    assert given.modelled_energy_j == pytest.approx(
        power.radio.value * transfers_s
        + power.compute.value * given.modelled_compute_s
        + power.idle.value * 3.0
    )


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
