"""What a round holds in a board's memory at its peak, modelled.

Let S be the bytes of the model's state, G_l those of one layer's parameters and R_l of what an
update of it holds, A the trained set, p = min A its shallowest layer, b the batch size and o the
values that the optimizer keeps for each parameter. A board holds all through a round

    3 S + 2 sum_{l in A} R_l

for what came, the model that it goes on top of and the published model that comes of both; for the
residual, and for that of the round before until its packet is settled. On top of that comes the
worst of

    step       S + sum_{l in A} (1 + o) G_l + b act(A)          forward and backward
    optimizer  S + sum_{l in A} (1 + o) G_l + 2 max |tensor|
    delta      S + sum_{l in A} ((1 + o) G_l + R_l)             trained minus published
    encode     7 sum_{l in A} R_l                               see _UPDATES_IN_ENCODING
    store      2 S + sum_{l in A} R_l                           a file beside what is in it

    act(A) = max(max_l forward_l, max_{l >= p} (sum_{p <= j <= l} passed_j + transient_l))
             + sum_{l in A} spared_l

where passed_l = activation_l - spared_l is kept for the backward pass even where l is frozen. So a
frozen prefix spares what its layers keep. Layers frozen above p spare no more than their gradients,
their residuals and what is kept for their own weights, which is little: a frozen suffix saves next
to no memory. What waits in the residual of frozen layers that trained in earlier rounds is not
counted; boards that are short of memory have none.

Each phase is a constant of p plus a sum over the trained layers, so that a planner can fit memory
as a knapsack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from fedfreeze.layout import Layout

# The C library returns freed memory in whole pieces, so pages of finished tensors stay resident
# between kept ones. Measured over traced bytes (ViT-Tiny, batches of 8 and 32, torch 2.14, glibc,
# x86): 1.22 to 1.35 as it comes, 1.0 with every block of its own (MALLOC_MMAP_THRESHOLD_=64 kB),
# which is slower. One case moves by 5 % and more from run to run.
ACTIVATION_FACTOR = 1.25

# What the first steps allocate whatever they train: buffers and code that the libraries load on
# first use, workspace of matrix products, free memory that the C library keeps. In a fresh process
# (the default task, torch 2.14, x86, one thread): 17 MB for the head alone to 24 MB for all layers
# at batch 32; 16 to 22 MB at batch 8, 22 to 28 MB at batch 128. A process that has trained
# something before has part of it already.
LIBRARY_BYTES = 21e6

# Copies that :mod:`client_app.round` holds from the order until the state is stored.
_MODELS_HELD, _RESIDUALS_HELD = 3, 2
# Adam's denominator beside its quotient; the squares of a gradient for its norm are one.
_OPTIMIZER_TENSORS = 2
# The delta, the residual once its packet is settled, the sum of both, and four for the codec: it
# takes 2.4 to 3.4 times an update (docs/codec.md), the rest being what the C library keeps. A round
# of ResNet-18 took 13.2 times S at its peak, this says 12, and 0.5 for LIBRARY_BYTES.
_UPDATES_IN_ENCODING = 7
# The state's bytes tensor by tensor, and in one piece.
_MODELS_IN_STORING = 2


@dataclass(frozen=True)
class Phase:
    """One phase of a round, for one shallowest trained layer.

    Attributes:
        fixed_bytes: whatever trains above that layer.
        layer_bytes: of each layer of the layout, added where it trains.
    """

    name: str
    fixed_bytes: float
    layer_bytes: tuple[float, ...]

    def bytes_of(self, places: Collection[int]) -> float:
        """With the layers at these places trained."""
        return self.fixed_bytes + sum(self.layer_bytes[place] for place in places)


def training_phases(
    layout: Layout, shallowest: int, batch_size: int, optimizer_slots: int
) -> tuple[Phase, ...]:
    """The phases of local training alone: step, optimizer and delta.

    Args:
        layout: of the model.
        shallowest: place of the shallowest trained layer; the number of layers if none trains.
        batch_size: examples in a step.
        optimizer_slots: values for each parameter (SGD 0, momentum 1, Adam 2).
    """
    state = layout.state_bytes
    gradients = [(1 + optimizer_slots) * layer.parameter_bytes for layer in layout]
    batch = batch_size * ACTIVATION_FACTOR
    spared = [batch * layer.costs.spared_bytes for layer in layout]
    largest = max(
        (spec.nbytes for layer in layout.layers[shallowest:] for spec in layer.parameters),
        default=0,
    )
    activations = batch * _activation_bytes(layout, shallowest)
    return (
        Phase("step", state + activations, _sums(gradients, spared)),
        Phase("optimizer", state + _OPTIMIZER_TENSORS * largest, _sums(gradients)),
        Phase("delta", state, _sums(gradients, [layer.float_bytes for layer in layout])),
    )


def round_phases(
    layout: Layout, shallowest: int, batch_size: int, optimizer_slots: int
) -> tuple[Phase, ...]:
    """All phases of a round, with what a board holds all through it; arguments as above."""
    floats = [layer.float_bytes for layer in layout]
    residuals = [_RESIDUALS_HELD * nbytes for nbytes in floats]
    alone = (
        *training_phases(layout, shallowest, batch_size, optimizer_slots),
        Phase("encode", 0.0, tuple(_UPDATES_IN_ENCODING * nbytes for nbytes in floats)),
        Phase("store", _MODELS_IN_STORING * layout.state_bytes, tuple(floats)),
    )
    return tuple(
        Phase(
            phase.name,
            _MODELS_HELD * layout.state_bytes + phase.fixed_bytes,
            _sums(phase.layer_bytes, residuals),
        )
        for phase in alone
    )


def local_training_bytes(
    layout: Layout, trained: Collection[str], batch_size: int, optimizer_slots: int
) -> float:
    """Peak bytes of local training alone, above the loaded program and the published model.

    Raises:
        LayoutError: a trained layer is not of the layout.
    """
    return _peak_bytes(layout, trained, training_phases, batch_size, optimizer_slots)


def training_memory_bytes(
    layout: Layout, trained: Collection[str], batch_size: int, optimizer_slots: int
) -> float:
    """Peak bytes of a round above the loaded program.

    Raises:
        LayoutError: a trained layer is not of the layout.
    """
    return _peak_bytes(layout, trained, round_phases, batch_size, optimizer_slots)


def _peak_bytes(
    layout: Layout,
    trained: Collection[str],
    phases: Callable[[Layout, int, int, int], tuple[Phase, ...]],
    batch_size: int,
    optimizer_slots: int,
) -> float:
    places = [layout.names.index(name) for name in layout.ordered(trained)]
    shallowest = min(places, default=len(layout))
    worst = max(
        phase.bytes_of(places) for phase in phases(layout, shallowest, batch_size, optimizer_slots)
    )
    return LIBRARY_BYTES + worst


def _activation_bytes(layout: Layout, shallowest: int) -> float:
    """Of an example, the peak that does not depend on what trains above the shallowest layer."""
    costs = [layer.costs for layer in layout]
    passed = accumulate(one.activation_bytes - one.spared_bytes for one in costs[shallowest:])
    reached = [
        kept + one.transient_bytes for kept, one in zip(passed, costs[shallowest:], strict=True)
    ]
    return max([*(one.forward_bytes for one in costs), *reached])


def _sums(*by_layer: Sequence[float]) -> tuple[float, ...]:
    return tuple(map(sum, zip(*by_layer, strict=True)))
