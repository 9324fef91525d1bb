"""Where a model can be cut in two: after which layers a single tensor crosses.

A tensor crosses the boundary after a layer if it depends on the input and on parameters of layers
up to there, and something beyond reads it. What depends on the input alone (a mask made from token
ids) can be computed again and does not count; neither does what follows from another tensor without
any parameter (a padded copy, a pooled map): the cut is the smallest tensor from which all that
crosses follows so. Tensors count by storage, views by the bytes that they show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tasks.tracing.places import Places
from tasks.tracing.tape import Operand, Tape

# Where the views of a value begin and how many bytes they show.
_Views = set[tuple[int, int]]


def cuts(places: Places, layers: int, batch: int) -> list[float | None]:
    """After each layer, bytes of an example of the one tensor that crosses to all later layers.

    None where there is no such tensor, and after the last layer.
    """
    tape = places.tape
    crossing: list[dict[int, _Views]] = [{} for _ in range(layers)]
    for at, operation in enumerate(tape.operations):
        for operand in operation.operands:
            if _carries(tape, operand.value):
                for after in range(places.of_value[operand.value], places.of_operation[at]):
                    views = crossing[after].setdefault(operand.value, set())
                    views.add((operand.offset, operand.nbytes))
    if _carries(tape, tape.output):
        for after in range(places.of_value[tape.output], layers):
            crossing[after].setdefault(tape.output, set())
    found = [_cut_bytes(tape, values) for values in crossing]
    return [None if nbytes is None else nbytes / batch for nbytes in found[:-1]] + [None]


def _cut_bytes(tape: Tape, crossing: Mapping[int, _Views]) -> int | None:
    """Of the smallest value from which all these follow without parameters; None without one."""
    needed: dict[int, _Views] = {}
    reaching: dict[int, int] = {}
    for value, views in crossing.items():
        for origin, read in _origins(tape, value, views):
            needed.setdefault(origin, set()).update(read)
            reaching[origin] = reaching.get(origin, 0) + 1
    common = [value for value, times in reaching.items() if times == len(crossing)]
    return min((_shown(tape, value, needed[value]) for value in common), default=None)


def _origins(tape: Tape, value: int, views: _Views) -> Iterator[tuple[int, _Views]]:
    """The value and those it follows from by itself, each with the views that are read of it."""
    yield value, views
    while (made_by := tape.values[value].made_by) is not None:
        operands = tape.operations[made_by].operands
        carriers = {operand.value for operand in operands if _carries(tape, operand.value)}
        if len(carriers) != 1 or any(_is_weight(tape, operand) for operand in operands):
            return
        (value,) = carriers
        yield (
            value,
            {(operand.offset, operand.nbytes) for operand in operands if operand.value == value},
        )


def _carries(tape: Tape, value: int) -> bool:
    return tape.values[value].on_input and tape.values[value].on_parameters


def _is_weight(tape: Tape, operand: Operand) -> bool:
    return tape.values[operand.value].on_parameters and not tape.values[operand.value].on_input


def _shown(tape: Tape, value: int, views: _Views) -> int:
    """Bytes of the largest view if all begin together; else of the whole storage."""
    whole = tape.values[value].storage_bytes
    if len({offset for offset, _ in views}) != 1:
        return whole
    return min(whole, max(nbytes for _, nbytes in views))
