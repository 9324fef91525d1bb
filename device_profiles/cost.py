"""What a plan costs on a board: operations, seconds, bytes and joules, all of them modelled.

With layers 1 ... L in forward order, the trained set A and its shallowest layer p = min A, one
training step computes

    FLOPs(A) = sum_l F_l + sum_{l > p} dX_l + dX'_p + sum_{l in A} dW_l  (an example)

F, dX and dW being the forward pass, the gradient towards the inputs of a layer's operations and
that of its weights; dX' is the part of dX between operations of one layer (0 for a single one).
Only a frozen prefix shortens the backward pass; layers frozen above p save their dW. Memory is in
:mod:`device_profiles.memory`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from device_profiles.board import Board, Power
from device_profiles.memory import training_memory_bytes
from fedfreeze.capacity import Capacity
from fedfreeze.layout import Layer, Layout
from fedfreeze.plan import PlanCost, Stage

__all__ = [
    "LINK_OVERHEAD",
    "ROUND_TRIP_S",
    "modelled_energy_j",
    "plan_cost",
    "training_flops",
    "training_memory_bytes",
]

# Of real transfers through SuperLink and SuperNode over TLS, measured on shaped links of 50 kB/s to
# 5 MB/s between network namespaces: frames, TCP and gRPC add 4.8 % to the payload, and polls and
# back-off 4 s to a round that sends a message each way.
LINK_OVERHEAD = 0.048
ROUND_TRIP_S = 4.0


def training_flops(layout: Layout, trained: Collection[str], examples: float) -> float:
    """Floating-point operations to train ``trained`` once on ``examples`` examples.

    Raises:
        LayoutError: a trained layer is not of the layout.
    """
    reached = _from_shallowest(layout, trained)
    forward = sum(layer.costs.forward_flops for layer in layout)
    input_grads = sum(layer.costs.input_grad_flops for layer in reached[1:])
    weight_grads = sum(layer.costs.weight_grad_flops for layer in reached if layer.name in trained)
    inner_grads = sum(layer.costs.inner_grad_flops for layer in reached[:1])
    return examples * (forward + input_grads + inner_grads + weight_grads)


def plan_cost(
    layout: Layout,
    plan_stages: Iterable[Stage],
    *,
    examples: int,
    epochs: int,
    batch_size: int,
    optimizer_slots: int,
    capacity: Capacity,
    download_bytes: float,
    upload_bytes: float,
    link_overhead: float = 0.0,
    round_trip_s: float = 0.0,
    power: Power | None = None,
) -> PlanCost:
    """What a plan is predicted to cost with this capacity.

    Compute is the sum over stages of their share of the steps. Memory is that of training the
    stages' layers together: a layer keeps its optimizer state after its stage, and the deepest
    backward pass of any stage decides on activations. Exact where the last stage trains them all.

    Args:
        layout: of the model.
        plan_stages: of the round.
        examples: that the board trains on in an epoch.
        epochs: of local training.
        batch_size: examples in a step.
        optimizer_slots: values that the optimizer keeps for each parameter.
        capacity: of the board in this round.
        download_bytes: of the whole order.
        upload_bytes: of the whole reply.
        link_overhead: share of the bytes that the wire adds, such as ``LINK_OVERHEAD``. A
            simulation has none.
        round_trip_s: of a round, whatever its bytes, such as ``ROUND_TRIP_S``; waited for with the
            download.
        power: of the board; with it the cost holds joules and bytes as well, without waiting for
            other boards.

    Raises:
        LayoutError: a stage names a layer that is not of the layout.
    """
    stages = tuple(plan_stages)
    flops = epochs * sum(
        stage.share * training_flops(layout, stage.layers, examples) for stage in stages
    )
    trained = frozenset(name for stage in stages for name in stage.layers)
    wire = 1.0 + link_overhead
    download_s = wire * download_bytes / capacity.downlink_bytes_per_s.value
    upload_s = wire * upload_bytes / capacity.uplink_bytes_per_s.value
    compute_s = flops / capacity.flops_per_s.value
    return PlanCost(
        modelled_download_s=download_s + round_trip_s,
        modelled_compute_s=compute_s,
        modelled_upload_s=upload_s,
        modelled_memory_bytes=training_memory_bytes(layout, trained, batch_size, optimizer_slots),
        modelled_upload_bytes=None if power is None else wire * upload_bytes,
        modelled_energy_j=None
        if power is None
        else power.radio.value * (download_s + upload_s)
        + power.compute.value * compute_s
        + power.idle.value * round_trip_s,
    )


def modelled_energy_j(board: Board, cost: PlanCost, round_s: float) -> float:
    """Joules of one board over a round of ``round_s`` seconds; it idles when it is done.

    A board that needs longer than the round is charged for the whole of its own work.
    """
    radio_s = cost.modelled_download_s + cost.modelled_upload_s
    idle_s = max(0.0, round_s - cost.modelled_total_s)
    return (
        board.power.radio.value * radio_s
        + board.power.compute.value * cost.modelled_compute_s
        + board.power.idle.value * idle_s
    )


def _from_shallowest(layout: Layout, trained: Collection[str]) -> tuple[Layer, ...]:
    """Layers that the backward pass reaches: none if nothing trains."""
    chosen = layout.ordered(trained)
    return layout.layers[layout.names.index(chosen[0]) :] if chosen else ()
