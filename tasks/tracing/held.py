"""What a training step holds in memory, layer by layer: read off the tape.

Three kinds of bytes. *Kept*: what autograd keeps for the backward pass. *Transient*: what is held
for a moment beside it: forward, a tensor from the operation that makes it to the last one that
reads it; backward, the gradient of a tensor from the last operation that read it down to the one
that made it; and the workspace of the operation that runs. *Forward*: what is held at worst where
nothing is kept, as in frozen layers before the first trained one.

The model's own tensors and what depends on them alone are left out: they do not grow with the
batch. A tensor that Python holds for longer than its last use is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from tasks.tracing.places import Places
from tasks.tracing.tape import Operation, Tape, Value


@dataclass(frozen=True)
class Held:
    """Bytes of one layer, of the whole batch.

    Attributes:
        kept: for the backward pass when it reaches the layer.
        spared: the part of ``kept`` that is not kept where the layer is frozen.
        transient: beside what is kept, at worst, forward or backward.
        forward: at worst, where nothing is kept.
    """

    kept: int
    spared: int
    transient: int
    forward: int


def held(places: Places) -> list[Held]:
    """What each layer holds."""
    layers = len(places.layers)
    kept, spared = [0] * layers, [0] * layers
    for asked in _kept(places).values():
        if asked.owner is None:
            kept[asked.place] += asked.nbytes
        else:
            kept[asked.owner] += asked.nbytes
            spared[asked.owner] += asked.nbytes
    transient, forward = _transients(places)
    return [Held(*of_layer) for of_layer in zip(kept, spared, transient, forward, strict=True)]


@dataclass
class _Asked:
    """A storage that autograd keeps.

    Attributes:
        place: the deepest layer that asked for it. Charged so, the sum over the layers from p on
            is what training from p on keeps.
        owner: the one layer for the weights of which alone it is kept; None if there is no such.
    """

    nbytes: int
    place: int
    owner: int | None


def _kept(places: Places) -> dict[int, _Asked]:
    tape = places.tape
    found: dict[int, _Asked] = {}
    for kept in tape.kept:
        value = tape.values[kept.value]
        if not _counts(value):
            continue
        place, owner = places.of_value[kept.value], None
        if kept.operation is not None:
            place = places.of_operation[kept.operation]
            owner = _owner(places, tape.operations[kept.operation])
        asked = _Asked(value.storage_bytes, max(0, place), owner)
        before = found.setdefault(value.storage, asked)
        before.place = max(before.place, asked.place)
        if before.owner != owner:
            before.owner = None
    return found


def _owner(places: Places, operation: Operation) -> int | None:
    """The layer of the weights for which alone the operation keeps its data, if it is so."""
    values = places.tape.values
    weights = [
        places.of_value[operand.value]
        for operand in operation.operands
        if operand.gradient_flops and _is_weight(values[operand.value])
    ]
    return max(weights) if operation.spares and weights else None


def _transients(places: Places) -> tuple[list[int], list[int]]:
    """Per layer, the most that is held beside what is kept, and the most if nothing is kept."""
    tape = places.tape
    count = len(tape.operations)
    kept = set(_kept(places))
    spans = list(_storages(tape))
    everything = _sums([span for _, span in spans], count)
    loose = _sums([span for storage, span in spans if storage not in kept], count)
    gradients = _sums(list(_gradients(tape)), count)
    transient, forward = [0] * len(places.layers), [0] * len(places.layers)
    for at, operation in enumerate(tape.operations):
        place = max(0, places.of_operation[at])
        workspace = operation.workspace_bytes
        transient[place] = max(transient[place], loose[at] + workspace, gradients[at] + workspace)
        forward[place] = max(forward[place], everything[at] + workspace)
    return transient, forward


@dataclass(frozen=True)
class _Span:
    """Bytes that are held from one operation to another, both among them."""

    nbytes: int
    first: int
    last: int


def _storages(tape: Tape) -> Iterator[tuple[int, _Span]]:
    """Every storage that counts, forward; the model's input is held by whoever calls the model."""
    end = len(tape.operations) - 1
    last: dict[int, int] = {}
    for at, operation in enumerate(tape.operations):
        for operand in operation.operands:
            last[tape.values[operand.value].storage] = at
    first: dict[int, int] = {}
    for value in tape.values:
        made = value.made_by
        first.setdefault(value.storage, 0 if made is None else made)
        last[value.storage] = max(last.get(value.storage, 0), made or 0)
        if made is None and value.on_input:
            last[value.storage] = end
    last[tape.values[tape.output].storage] = end
    sizes = {value.storage: value.storage_bytes for value in tape.values}
    left_out = {value.storage for value in tape.values if not _counts(value)}
    for storage, nbytes in sizes.items():
        if storage not in left_out:
            yield storage, _Span(nbytes, first[storage], last[storage])


def _gradients(tape: Tape) -> Iterator[_Span]:
    """The gradient of every value that has one, by the operations that it outlives."""
    read: dict[int, int] = {tape.output: len(tape.operations) - 1}
    for at, operation in enumerate(tape.operations):
        for operand in operation.operands:
            if operand.needs_grad:
                read[operand.value] = max(at, read.get(operand.value, 0))
    for number, last in read.items():
        value = tape.values[number]
        if value.on_input and value.on_parameters:
            yield _Span(value.storage_bytes, value.made_by or 0, last)


def _sums(spans: list[_Span], count: int) -> list[int]:
    """At each operation, the bytes of all spans over it."""
    steps = [0] * (count + 1)
    for span in spans:
        steps[span.first] += span.nbytes
        steps[span.last + 1] -= span.nbytes
    return list(accumulate(steps[:count]))


def _counts(value: Value) -> bool:
    return not value.tensors and not _is_weight(value)


def _is_weight(value: Value) -> bool:
    return value.on_parameters and not value.on_input
