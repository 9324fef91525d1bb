"""What a plan costs on a board: operations, memory, seconds and joules, all of them modelled.

With layers 1 ... L in forward order, the trained set A and its shallowest layer p = min A, one
training step computes

    FLOPs(A) = sum_l F_l + sum_{l > p} dX_l + dX'_p + sum_{l in A} dW_l  (an example)
    Act(A)   = sum_{l >= p} saved_l                                      (bytes an example)

F, dX and dW being the forward pass, the gradient towards the inputs of a layer's operations and
that of its weights; dX' is the part of dX between operations of one layer (0 for a single one).
Only a frozen prefix shortens the backward pass and spares activations; layers frozen above p save
their dW and the bytes of their gradient and optimizer state, nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from device_profiles.board import Board
from fedfreeze.capacity import Capacity
from fedfreeze.layout import Layer, Layout
from fedfreeze.plan import PlanCost, Stage

# Kept tensors are not the whole peak: an operator also holds its unsaved output for a moment.
ACTIVATION_FACTOR = 1.1

# What the first steps allocate whatever they train: buffers and code that the libraries load on
# first use, convolution workspace, allocator slack. Measured as peak resident memory less gradients
# and kept tensors (the default task, torch 2.14, x86, one thread, batch 32): 17 MB for the head
# alone to 24 MB for all layers; 16 to 22 MB at batch 8, 22 to 28 MB at batch 128.
TRANSIENT_BYTES = 24e6


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


def training_memory_bytes(
    layout: Layout, trained: Collection[str], batch_size: int, optimizer_slots: int
) -> float:
    """Peak bytes of a training step above the loaded program.

    The model and the published copy that deltas are taken from; the residual of all parameters; a
    gradient and ``optimizer_slots`` values (SGD 0, momentum 1, Adam 2) for each trained parameter;
    activations from the shallowest trained layer on; a constant for transients.

    Raises:
        LayoutError: a trained layer is not of the layout.
    """
    reached = _from_shallowest(layout, trained)
    state = sum(spec.nbytes for spec in layout.tensors.values())
    trained_bytes = sum(layer.parameter_bytes for layer in reached if layer.name in trained)
    activations = sum(layer.costs.activation_bytes for layer in reached)
    return (
        2 * state
        + layout.parameter_bytes
        + (1 + optimizer_slots) * trained_bytes
        + batch_size * activations * ACTIVATION_FACTOR
        + TRANSIENT_BYTES
    )


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
) -> PlanCost:
    """Seconds and memory that a plan is predicted to take with this capacity.

    Compute is the sum over stages of their share of the steps. Memory is that of training the
    stages' layers together: a layer keeps its optimizer state after its stage, and the deepest
    backward pass of any stage decides on activations. Exact where the last stage trains them all.

    Raises:
        LayoutError: a stage names a layer that is not of the layout.
    """
    stages = tuple(plan_stages)
    flops = epochs * sum(
        stage.share * training_flops(layout, stage.layers, examples) for stage in stages
    )
    trained = frozenset(name for stage in stages for name in stage.layers)
    return PlanCost(
        modelled_download_s=download_bytes / capacity.downlink_bytes_per_s.value,
        modelled_compute_s=flops / capacity.flops_per_s.value,
        modelled_upload_s=upload_bytes / capacity.uplink_bytes_per_s.value,
        modelled_memory_bytes=training_memory_bytes(layout, trained, batch_size, optimizer_slots),
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
