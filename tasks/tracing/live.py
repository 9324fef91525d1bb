"""Which gradients are really computed: those on a way from the output back to a parameter.

A tensor that requires a gradient does not get one where its result is only looked at (a detached
branch, a block under ``no_grad``). And inside an ``autograd.Function`` no tensor requires one,
since the function brings its own backward pass: there every operand that depends on parameters is
taken to get its gradient, at what it costs elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from tasks.tracing.tape import Operand, Operation, Tape


def with_live_gradients(tape: Tape) -> Tape:
    """The tape with ``needs_grad`` of every operand as it is on the way back from the output."""
    made: dict[int, list[int]] = defaultdict(list)
    for number, value in enumerate(tape.values):
        if value.made_by is not None:
            made[value.made_by].append(number)
    live = {tape.output}
    operations = list(tape.operations)
    for at in reversed(range(len(operations))):
        operation = operations[at]
        # A view makes no value of its own: what it shows is live, or not, by whoever reads it.
        is_live = not live.isdisjoint(made[at])
        operands = tuple(
            replace(operand, needs_grad=is_live and _wants(tape, operation, operand))
            for operand in operation.operands
        )
        operations[at] = replace(operation, operands=operands)
        live.update(operand.value for operand in operands if operand.needs_grad)
    return replace(tape, operations=tuple(operations))


def _wants(tape: Tape, operation: Operation, operand: Operand) -> bool:
    """Whether the operation, if its result gets a gradient, passes one on to the operand."""
    value = tape.values[operand.value]
    is_inside = not operation.is_recorded and value.made_by is not None and value.on_parameters
    return operand.needs_grad or is_inside
