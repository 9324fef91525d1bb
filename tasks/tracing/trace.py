"""Traces a model into a layout: layers in true forward order, with what one example costs in each.

The model runs once, forward and backward; what is computed is written down operation by operation
(:mod:`tasks.tracing.tape`), and everything else is read off that: which layer comes first, costs,
and where the model can be cut. What a run does not reach (a branch that depends on the data) is not
seen: a layer that did not run is an error.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from fedfreeze.errors import LayoutError
from fedfreeze.layout import Kind, Layer, Layout, TensorSpec
from tasks.tracing.checks import check_modules, check_sizes_stay, check_tensors
from tasks.tracing.costs import layer_costs
from tasks.tracing.cuts import cuts
from tasks.tracing.globs import by_globs
from tasks.tracing.layers import automatic, merged_ties
from tasks.tracing.live import with_live_gradients
from tasks.tracing.places import Places, in_forward_order
from tasks.tracing.tape import Tape, named_state, record
from tasks.tracing.units import Uses

_WHOLE_NUMBERS = "; whole numbers reach a model as they are unless the task has a preprocessing"


def trace(
    model: nn.Module,
    example: Tensor,
    name: str,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Layout:
    """The layout of ``model``.

    The model stays as it is: a copy of it runs, in train mode.

    Args:
        model: a module whose output is one tensor.
        example: a batch ``[n, ...]``; costs are divided by ``n``.
        name: of the model, for the layout and messages.
        groups: layers as globs over tensor names (:func:`tasks.tracing.globs.by_globs`); None for
            the tracer's own division (:func:`tasks.tracing.layers.automatic`).

    Raises:
        LayoutError: the model does not run, has nothing to train, has a layer that never runs or a
            parameter that never gets a gradient, uses an operation of unknown cost, or the globs do
            not fit.
    """
    check_modules(model, name)
    state = named_state(model)
    check_tensors(model, state, name)
    watched, tape = _run(model, example, name)
    check_sizes_stay(state, named_state(watched), name)
    if groups is None:
        layer_of = automatic(watched, Uses(tape.first_use(), tape.weights()))
    else:
        layer_of = by_globs(list(state), groups, name)
    layer_of = merged_ties(layer_of, named_state(watched))
    _check_reached(watched, tape, layer_of, name)
    order = in_forward_order(tape, layer_of)
    places = Places(tape, order, layer_of)
    costs = layer_costs(places, len(example), name)
    cut_bytes = cuts(places, len(order), len(example))
    specs = _specs(model, state)
    return Layout(
        model=name,
        layers=tuple(
            Layer(
                name=layer,
                tensors=tuple(spec for spec in specs if layer_of[spec.name] == layer),
                costs=cost,
                cut_bytes=cut,
            )
            for layer, cost, cut in zip(order, costs, cut_bytes, strict=True)
        ),
    )


def _run(model: nn.Module, example: Tensor, name: str) -> tuple[nn.Module, Tape]:
    """A copy that has run once, forward and backward, and its tape."""
    try:
        watched = copy.deepcopy(model)
    except Exception as error:  # whatever the tensors and attributes of the user's modules raise
        raise LayoutError(
            f'model "{name}" cannot be copied: {error}; use torch.nn.utils.parametrizations in '
            "place of the older hooks that keep computed tensors on modules"
        ) from error
    watched.train()
    for parameter in watched.parameters():
        parameter.grad = None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # every process must see the same branch of a model that tosses coins
        try:
            tape, output = record(watched, example.detach().clone())
            tape = with_live_gradients(tape)
        except LayoutError:
            raise
        except Exception as error:
            dtype = str(example.dtype).removeprefix("torch.")
            raise LayoutError(
                f'model "{name}" fails on an example {list(example.shape)} of {dtype}: '
                f"{type(error).__name__}: {error}"
                f"{'' if example.is_floating_point() else _WHOLE_NUMBERS}"
            ) from error
        if not isinstance(output, Tensor):
            raise LayoutError(
                f'model "{name}" must return one tensor, it returned {type(output).__name__}; '
                "wrap it in a module that returns the logits alone"
            )
        if output.dim() == 0 or len(output) != len(example):
            raise LayoutError(
                f'model "{name}" must return one row for each example, it returned '
                f"{list(output.shape)} for {len(example)} examples; leave means and losses to the "
                "task"
            )
        if output.requires_grad:  # else the check of gradients names who is cut off
            torch.manual_seed(0)
            _go_back(watched, example, name)
    return watched, tape


def _go_back(watched: nn.Module, example: Tensor, name: str) -> None:
    """Give every parameter its gradient, on a run that nobody records.

    Recording keeps saved tensors by itself, past autograd's own check that nothing overwrote them.
    """
    try:
        with torch.enable_grad():
            torch.autograd.backward(watched(example.detach().clone()).float().square().sum())
    except Exception as error:
        raise LayoutError(
            f'model "{name}" fails on the way back from its output: {type(error).__name__}: {error}'
        ) from error


def _check_reached(watched: nn.Module, tape: Tape, layer_of: Mapping[str, str], name: str) -> None:
    used = tape.first_use()
    ran = {layer_of[tensor] for tensor in used if tensor in layer_of}
    if idle := [layer for layer in layer_of.values() if layer not in ran]:
        raise LayoutError(
            f'model "{name}": layer "{idle[0]}" never ran in the forward pass; use it or remove it'
        )
    for key, parameter in watched.named_parameters():
        if parameter.requires_grad and parameter.grad is None:
            raise LayoutError(
                f'model "{name}": layer "{layer_of[key]}" got no gradient for "{key}"; use the '
                "parameter on the way to the output, remove it, or set its requires_grad to False"
            )
        if parameter.grad is not None and parameter.grad.layout is not torch.strided:
            raise LayoutError(
                f'model "{name}": layer "{layer_of[key]}" gives a sparse gradient for "{key}", '
                "which optimizers with momentum or weight decay do not take; build the embedding "
                "without sparse=True"
            )


def _specs(model: nn.Module, state: Mapping[str, Tensor]) -> list[TensorSpec]:
    """Every tensor once, under its first name, in the order of the state."""
    parameters = {id(parameter) for parameter in model.parameters()}
    specs: dict[int, TensorSpec] = {}
    for key, tensor in state.items():
        kind: Kind = "buffer"
        if id(tensor) in parameters:
            kind = "parameter" if tensor.requires_grad else "constant"
        dtype = str(tensor.dtype).removeprefix("torch.")
        specs.setdefault(id(tensor), TensorSpec(key, tuple(tensor.shape), dtype, kind))
    return list(specs.values())
