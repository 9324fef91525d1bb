"""What each layer costs, and where each operation stands: read off the tape.

The *place* of an operation is the deepest layer of which it needs something: the deepest among its
operands and the tensors of the model that it uses. It follows the flow of data, not the clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedfreeze.errors import LayoutError
from fedfreeze.layout import LayerCosts
from tasks.tracing.tape import Operation, Tape

# The place of what depends on no layer at all.
NOWHERE = -1


@dataclass
class _Sums:
    """Of one layer, for the whole batch."""

    forward: float = 0.0
    input_grad: float = 0.0
    inner_grad: float = 0.0
    weight_grad: float = 0.0
    kept_bytes: int = 0


def in_forward_order(tape: Tape, layer_of: Mapping[str, str]) -> tuple[str, ...]:
    """Layers by the turn of the first use of any of their tensors; never-used ones come last."""
    first: dict[str, int] = {}
    never = len(tape.operations)
    uses = tape.first_use()
    for tensor, layer in layer_of.items():
        first[layer] = min(first.get(layer, never), uses.get(tensor, never))
    return tuple(sorted(first, key=first.__getitem__))


class Places:
    """Where every value and operation of a tape stands among ordered layers."""

    def __init__(self, tape: Tape, layers: Sequence[str], layer_of: Mapping[str, str]) -> None:
        number = {layer: at for at, layer in enumerate(layers)}
        self.tape = tape
        self.of_value: list[int] = []
        self.of_operation: list[int] = []
        # A value is older than every operation that reads it, and younger than the one it is from.
        for value in tape.values:
            own = [number[layer_of[name]] for name in value.tensors if name in layer_of]
            if value.made_by is not None:
                self._operations_until(value.made_by)
                own.append(self.of_operation[value.made_by])
            self.of_value.append(max(own, default=NOWHERE))
        self._operations_until(len(tape.operations) - 1)

    def _operations_until(self, last: int) -> None:
        for operation in self.tape.operations[len(self.of_operation) : last + 1]:
            operands = [self.of_value[operand.value] for operand in operation.operands]
            self.of_operation.append(max(operands, default=NOWHERE))


def layer_costs(places: Places, layers: int, batch: int, model: str) -> list[LayerCosts]:
    """Costs of one example in each layer.

    Forward and weight gradient of an operation belong to the layer that owns the weight; the
    gradient towards its input to the operation's place, because whoever trains up to there needs
    it. What depends on parameters alone (a standardised weight, a position bias) is computed once a
    step, not once an example, and is left out.

    Raises:
        LayoutError: an operation that nobody knows uses a parameter of ``model``.
    """
    tape = places.tape
    sums = [_Sums() for _ in range(layers)]
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
        if weights and not operation.known:
            name = min(tape.values[weights[0].value].sources)
            raise LayoutError(
                f'model "{model}": the operation {operation.name} uses the parameter "{name}", and '
                "there is no formula for what it costs; write the step with matrix products, "
                "convolutions, norms or products, or add a formula to tasks/tracing/flops.py"
            )
        owners = [places.of_value[operand.value] for operand in weights if operand.gradient_flops]
        sums[max(owners, default=place)].forward += operation.forward_flops
        _add_gradients(operation, place, places, sums)
    for value, place in _kept(places).items():
        sums[max(0, place)].kept_bytes += tape.values[value].storage_bytes
    return [
        LayerCosts(
            forward_flops=one.forward / batch,
            input_grad_flops=one.input_grad / batch,
            weight_grad_flops=one.weight_grad / batch,
            activation_bytes=one.kept_bytes / batch,
            inner_grad_flops=one.inner_grad / batch,
        )
        for one in sums
    ]


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


def _kept(places: Places) -> dict[int, int]:
    """A value of each storage that autograd keeps, and the deepest place that asked for it.

    Charged so, the sum over the layers from p on is what training from p on keeps. The model's own
    tensors are there anyway, and what depends on them alone does not grow with the batch.
    """
    tape = places.tape
    deepest: dict[int, tuple[int, int]] = {}
    for kept in tape.kept:
        value = tape.values[kept.value]
        if value.tensors or (value.on_parameters and not value.on_input):
            continue
        asked = places.of_value[kept.value]
        if kept.operation is not None:
            asked = places.of_operation[kept.operation]
        _, before = deepest.get(value.storage, (kept.value, NOWHERE))
        deepest[value.storage] = (kept.value, max(asked, before))
    return dict(deepest.values())
