"""Where each operation stands among the layers: read off the tape.

The *place* of an operation is the deepest layer of which it needs something: the deepest among its
operands and the tensors of the model that it uses. It follows the flow of data, not the clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasks.tracing.tape import Tape

# The place of what depends on no layer at all.
NOWHERE = -1


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
        self.layers = tuple(layers)
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
