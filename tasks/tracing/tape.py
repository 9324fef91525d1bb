"""Runs a model once and writes down every operation below autograd: the tape.

Whatever the modules look like, this is what is really computed, in true order: which values each
operation reads, whether they come from the input, from parameters or from both, and what autograd
keeps for the backward pass. Everything else in this folder reads the tape and runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tasks.tracing.flops import Work, base_name, is_known, work_of
from tasks.tracing.free import is_free

# Their result has the shape of an operand but none of its values.
_FACTORIES = frozenset(
    {
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "rand_like",
        "randn_like",
        "randint_like",
    }
    | {"new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided"}
)


@dataclass(frozen=True)
class Value:
    """One state of one storage; an in-place operation makes a new state, a view does not.

    Attributes:
        storage: number of the storage.
        storage_bytes: its size.
        on_input: whether it was computed from the model's input.
        on_parameters: whether it was computed from, or is, a parameter of the model.
        tensors: names of the model's tensors that it is, if it is one.
        sources: names of all parameters in it, as long as it does not depend on the input.
        made_by: number of the operation that made it; None for what was there before.
    """

    storage: int
    storage_bytes: int
    on_input: bool = False
    on_parameters: bool = False
    tensors: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    made_by: int | None = None


@dataclass(frozen=True)
class Operand:
    """A value as one operation reads it.

    Attributes:
        value: its number.
        needs_grad: whether autograd would send a gradient to it.
        gradient_flops: what that gradient costs, for the whole batch.
        nbytes, offset: of the view of the storage that is read.
    """

    value: int
    needs_grad: bool
    gradient_flops: float
    nbytes: int
    offset: int


@dataclass(frozen=True)
class Operation:
    """One operation of the forward pass.

    Attributes:
        forward_flops, inner_flops, spares, workspace_bytes: see :class:`tasks.tracing.flops.Work`.
        known: whether there is a formula for it, or a convention that it is free, where it uses a
            parameter.
        free: whether by convention it is free between activations.
        weighs: whether it multiplies by matrices or kernels, so that an operand may be a weight.
        is_recorded: whether autograd writes it down; not under ``no_grad``, and not inside an
            ``autograd.Function``.
    """

    name: str
    operands: tuple[Operand, ...]
    forward_flops: float
    inner_flops: float
    known: bool
    free: bool
    weighs: bool
    spares: bool
    workspace_bytes: int
    is_recorded: bool


@dataclass(frozen=True)
class Kept:
    """A storage that autograd keeps, and the operation that asked for it (None: not known)."""

    value: int
    operation: int | None


@dataclass(frozen=True)
class Tape:
    """One forward pass.

    Attributes:
        output: number of the value that the model returned.
    """

    operations: tuple[Operation, ...]
    values: tuple[Value, ...]
    kept: tuple[Kept, ...]
    output: int

    def first_use(self) -> dict[str, int]:
        """By name of a tensor, the number of the first operation that reads it."""
        first: dict[str, int] = {}
        for at, operation in enumerate(self.operations):
            for operand in operation.operands:
                for name in sorted(self.values[operand.value].tensors):
                    first.setdefault(name, at)
        return first

    def weights(self) -> frozenset[str]:
        """Names of the parameters that some operation multiplies data by."""
        names: set[str] = set()
        for operation in self.operations:
            values = [self.values[operand.value] for operand in operation.operands]
            if operation.weighs and any(value.on_input for value in values):
                for operand in operation.operands:
                    if operand.gradient_flops > 0:  # not a bias
                        names |= self.values[operand.value].sources
        return frozenset(names)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Stands below autograd and sees every operation with its real tensors."""

    def __init__(self, model: nn.Module, example: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self.values: list[Value] = []
        # Storage address -> number of its present value. The storages are held, so that no address
        # is used again while the tape is written.
        self._now: dict[int, int] = {}
        self._held: list[Any] = []
        self._kept: list[tuple[int, int]] = []
        self._first_of_node: dict[int, int] = {}
        parameters = {id(parameter) for parameter in model.parameters()}
        named: dict[int, list[tuple[str, Tensor]]] = {}
        for name, tensor in named_state(model).items():
            named.setdefault(_address(tensor), []).append((name, tensor))
        for sharing in named.values():
            names = frozenset(name for name, _ in sharing)
            trained = frozenset(name for name, tensor in sharing if id(tensor) in parameters)
            self._add(sharing[0][1], on_parameters=bool(trained), tensors=names, sources=trained)
        self._add(example, on_input=True)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # the signature is torch's
        kwargs = kwargs or {}
        name = base_name(func)
        given = [] if name in _FACTORIES else _tensors((args, kwargs))
        numbers = [self._number(tensor) for tensor in given]
        needs_grad = [tensor.requires_grad for tensor in given]
        result = func(*args, **kwargs)
        work = work_of(name, args, kwargs, result)
        read = [self.values[number] for number in numbers]
        if work.pointwise and not any(v.on_parameters and not v.on_input for v in read):
            work = Work()
        self._first_of_node.setdefault(_node(), len(self.operations))
        self.operations.append(
            Operation(
                name=func.name(),
                operands=tuple(
                    Operand(
                        value=number,
                        needs_grad=needs,
                        gradient_flops=work.gradient(tensor) / _times(tensor, given),
                        nbytes=_bytes(tensor),
                        offset=int(tensor.storage_offset()),
                    )
                    for tensor, number, needs in zip(given, numbers, needs_grad, strict=True)
                ),
                forward_flops=work.forward,
                inner_flops=work.inner,
                known=is_known(name),
                free=is_free(func, name),
                weighs=work.weighs,
                spares=work.spares,
                workspace_bytes=work.workspace_bytes,
                is_recorded=torch.is_grad_enabled(),
            )
        )
        self._note_results(func, args, kwargs, result, numbers)
        return result

    def keep(self, tensor: Tensor) -> Tensor:
        """What autograd calls for everything that it saves.

        It builds the node first, then saves the inputs, runs the operation and saves the results:
        the number of the youngest node tells to which operation the tensor belongs.
        """
        if tensor.layout is torch.strided:
            self._kept.append((self._number(tensor), _node()))
        return tensor

    def tape(self, output: Tensor) -> Tape:
        kept = tuple(Kept(value, self._first_of_node.get(node)) for value, node in self._kept)
        return Tape(tuple(self.operations), tuple(self.values), kept, self._number(output))

    def _note_results(
        self, func: Any, args: Any, kwargs: Any, result: Any, numbers: list[int]
    ) -> None:
        on_input = any(self.values[number].on_input for number in numbers)
        depends = {
            "on_input": on_input,
            "on_parameters": any(self.values[number].on_parameters for number in numbers),
            "sources": frozenset()
            if on_input
            else frozenset().union(*(self.values[number].sources for number in numbers)),
            "made_by": len(self.operations) - 1,
        }
        written = {_address(tensor): tensor for tensor in _written(func, args, kwargs)}
        for address, tensor in written.items():
            tensors = (
                self.values[self._now[address]].tensors if address in self._now else frozenset()
            )
            self._add(tensor, tensors=tensors, **depends)
        for tensor in _tensors(result):
            if _address(tensor) not in self._now:
                self._add(tensor, **depends)

    def _number(self, tensor: Tensor) -> int:
        address = _address(tensor)
        return self._now[address] if address in self._now else self._add(tensor)

    def _add(self, tensor: Tensor, **what: Any) -> int:
        storage, address = tensor.untyped_storage(), _address(tensor)
        if address not in self._now:
            self._held.append(storage)
        number = (
            self.values[self._now[address]].storage if address in self._now else len(self._held)
        )
        self.values.append(Value(number, storage.nbytes(), **what))
        self._now[address] = len(self.values) - 1
        return self._now[address]


def record(model: nn.Module, example: Tensor) -> tuple[Tape, Any]:
    """The tape of one forward pass in the model's present mode, and what the model returned.

    Args:
        model: runs as it is.
        example: a batch ``[n, ...]``.
    """
    recorder = _Recorder(model, example)
    hooks = torch.autograd.graph.saved_tensors_hooks(recorder.keep, lambda kept: kept)
    with torch.enable_grad(), hooks, recorder:
        output = model(example)
    return recorder.tape(output if isinstance(output, Tensor) else example), output


def named_state(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of the model's state, the very ones, by name; tied ones under all their names."""
    state = model.state_dict(keep_vars=True)
    return {name: tensor for name, tensor in state.items() if isinstance(tensor, Tensor)}


def _tensors(tree: Any) -> list[Tensor]:
    return [
        leaf
        for leaf in tree_leaves(tree)
        if isinstance(leaf, Tensor) and leaf.layout is torch.strided
    ]


def _written(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The operands that the operation changes in place."""
    written: list[Tensor] = []
    for at, argument in enumerate(func._schema.arguments):  # noqa: SLF001
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[at] if at < len(args) else kwargs.get(argument.name)
            written += _tensors(given)
    return written


def _address(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _times(tensor: Tensor, given: list[Tensor]) -> int:
    return sum(other is tensor for other in given)


def _node() -> int:
    """Number of the youngest node of the autograd graph in this thread."""
    return int(torch._C._autograd._get_sequence_nr()) - 1  # noqa: SLF001
