"""What each layer costs: read off the tape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedfreeze.errors import LayoutError
from fedfreeze.layout import LayerCosts
from tasks.tracing.held import held
from tasks.tracing.places import Places
from tasks.tracing.tape import Operand, Operation

_REMEDY = (
    "there is no formula for what it costs; write the step with matrix products, convolutions, "
    "norms or products, or add a formula to tasks/tracing/flops.py"
)


@dataclass
class _Sums:
    """Operations of one layer, for the whole batch."""

    forward: float = 0.0
    input_grad: float = 0.0
    inner_grad: float = 0.0
    weight_grad: float = 0.0


def layer_costs(places: Places, batch: int, model: str) -> list[LayerCosts]:
    """Costs of one example in each layer.

    Forward and weight gradient of an operation belong to the layer that owns the weight; the
    gradient towards its input to the operation's place, because whoever trains up to there needs
    it. What depends on parameters alone (a standardised weight, a position bias) is computed once a
    step, not once an example, and is left out.

    Raises:
        LayoutError: ``model`` uses an operation of which nobody knows what it costs.
    """
    tape = places.tape
    sums = [_Sums() for _ in places.layers]
    for at, operation in enumerate(tape.operations):
        values = [tape.values[operand.value] for operand in operation.operands]
        if not any(value.on_input for value in values):
            continue
        place = max(0, places.of_operation[at])
        weights = [
            operand
            for operand, value in zip(operation.operands, values, strict=True)
            if value.on_parameters and not value.on_input
        ]
        _check_known(operation, weights, places, place, model)
        owners = [places.of_value[operand.value] for operand in weights if operand.gradient_flops]
        sums[max(owners, default=place)].forward += operation.forward_flops
        _add_gradients(operation, place, places, sums)
    return [
        LayerCosts(
            forward_flops=one.forward / batch,
            input_grad_flops=one.input_grad / batch,
            weight_grad_flops=one.weight_grad / batch,
            activation_bytes=memory.kept / batch,
            inner_grad_flops=one.inner_grad / batch,
            spared_bytes=memory.spared / batch,
            transient_bytes=memory.transient / batch,
            forward_bytes=memory.forward / batch,
        )
        for one, memory in zip(sums, held(places), strict=True)
    ]


def _check_known(
    operation: Operation, weights: Sequence[Operand], places: Places, place: int, model: str
) -> None:
    if operation.known:
        return
    if weights:
        name = min(places.tape.values[weights[0].value].sources)
        raise LayoutError(
            f'model "{model}": the operation {operation.name} uses the parameter "{name}", and '
            f"{_REMEDY}"
        )
    if not operation.free:
        raise LayoutError(
            f'model "{model}": the operation {operation.name} runs in layer '
            f'"{places.layers[place]}", and {_REMEDY}'
        )


def _add_gradients(operation: Operation, place: int, places: Places, sums: Sequence[_Sums]) -> None:
    if any(operand.needs_grad for operand in operation.operands):
        sums[place].input_grad += operation.inner_flops
        sums[place].inner_grad += operation.inner_flops
    for operand in operation.operands:
        if not operand.needs_grad:
            continue
        origin = places.of_value[operand.value]
        if not places.tape.values[operand.value].on_input:
            sums[max(0, origin)].weight_grad += operand.gradient_flops
            continue
        sums[place].input_grad += operand.gradient_flops
        if origin == place:
            sums[place].inner_grad += operand.gradient_flops
