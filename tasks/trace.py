"""Traces a model into a layout: layers in true forward order, with what one example costs in each.

Layers are the model's direct children that own tensors. FLOPs come from a formula for each kind
of module that owns parameters; bytes come from what autograd really keeps.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from fedfreeze.errors import LayoutError
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from tasks.flops import forward_flops, weight_grad_flops


@dataclass
class _Child:
    """What one direct child cost in the traced batch; ``place`` is its turn in the forward pass."""

    place: int
    forward: float = 0.0
    input_grad: float = 0.0
    weight_grad: float = 0.0
    kept_bytes: int = 0


@dataclass
class _Trace:
    """Watches one forward pass. What runs between two children belongs to the one before."""

    children: dict[str, _Child] = field(default_factory=dict)
    current: _Child | None = None
    counted: set[str] = field(default_factory=set)
    # Storage address -> (a tensor in it, which keeps the address from being used again; its child).
    kept: dict[int, tuple[Tensor, _Child | None]] = field(default_factory=dict)

    def entering(self, name: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            self.current = self.children.setdefault(name, _Child(place=len(self.children)))

        return hook

    def counting(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            assert self.current is not None, "a child's hook runs before those of its modules"
            self.counted.add(name)
            forward = forward_flops(module, name, output)
            self.current.forward += forward
            self.current.weight_grad += weight_grad_flops(module, name, output)
            # The model's own input is data: nothing asks for its gradient.
            given = [*args, *kwargs.values()]
            if any(isinstance(value, Tensor) and value.requires_grad for value in given):
                self.current.input_grad += forward

        return hook

    def keep(self, tensor: Tensor) -> Tensor:
        # A tensor stays in memory if any operation that saved it is recorded. Charged to the
        # deepest child that saved it, the sum over l >= p is what training from p on keeps.
        address = tensor.untyped_storage().data_ptr()
        _, owner = self.kept.get(address, (tensor, None))
        if owner is None or (self.current is not None and self.current.place > owner.place):
            owner = self.current
        self.kept[address] = (tensor, owner)
        return tensor


def trace(model: nn.Module, example_input: Tensor, name: str) -> Layout:
    """The layout of ``model``.

    The model stays as it is: a copy of it runs once, forward and backward.

    Args:
        model: a module whose tensors all lie in direct children; its output is one tensor.
        example_input: a batch ``[n, ...]``; costs are divided by ``n``.
        name: of the model, for the layout and messages.

    Raises:
        LayoutError: a tensor lies in no child or in two, a child never runs or never gets a
            gradient, or a module that owns parameters has no formula for its costs.
    """
    owning = _owning_children(model, name)
    if not owning:
        raise LayoutError(f'model "{name}" has no layer: no child of it owns a tensor')
    watched = copy.deepcopy(model).train()
    for parameter in watched.parameters():
        parameter.requires_grad_(True)
        parameter.grad = None
    found = _Trace()
    modules = _watch(watched, found, list(owning))
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        with torch.autograd.graph.saved_tensors_hooks(found.keep, lambda kept: kept):
            output = watched(example_input.detach().clone())
        if not isinstance(output, Tensor):
            raise LayoutError(
                f'model "{name}" must return one tensor, it returned {type(output).__name__}'
            )
        if output.requires_grad:  # else the check below names who is cut off
            torch.autograd.backward(output.square().sum())
    for child in owning:
        _check_reached(watched.get_submodule(child), child, found, name)
    if uncounted := [module for module in modules if module not in found.counted]:
        raise LayoutError(
            f'model "{name}": the parameters of "{uncounted[0]}" are used without calling the '
            f"module, so their cost is unknown; call the module"
        )
    _charge_kept(watched, found)
    batch = len(example_input)
    return Layout(
        model=name,
        layers=tuple(
            Layer(
                name=child,
                tensors=_specs(owning[child], child),
                costs=LayerCosts(
                    forward_flops=costs.forward / batch,
                    input_grad_flops=costs.input_grad / batch,
                    weight_grad_flops=costs.weight_grad / batch,
                    activation_bytes=costs.kept_bytes / batch,
                ),
            )
            for child, costs in found.children.items()
        ),
    )


def _owning_children(model: nn.Module, name: str) -> dict[str, nn.Module]:
    """Direct children with tensors, after a check that every tensor lies in exactly one."""
    if loose := [key for key in model.state_dict() if "." not in key]:
        raise LayoutError(
            f'model "{name}": tensor "{loose[0]}" lies in no child module; '
            f"move it into one, so that it belongs to a layer"
        )
    children = {
        child: module
        for child, module in model.named_modules(remove_duplicate=False)
        if child and "." not in child and module.state_dict()
    }
    owner: dict[int, str] = {}
    for child, module in children.items():
        for key, tensor in module.state_dict(keep_vars=True).items():
            first = owner.setdefault(id(tensor), child)
            if first != child:
                raise LayoutError(
                    f'model "{name}": children "{first}" and "{child}" share the tensor '
                    f'"{child}.{key}"; put both into one child, so that they freeze together'
                )
    return children


def _watch(model: nn.Module, found: _Trace, children: list[str]) -> list[str]:
    """Puts hooks on the children; returns the names of all modules that own parameters."""
    for child in children:
        model.get_submodule(child).register_forward_pre_hook(found.entering(child))
    owners = [
        (name, module)
        for name, module in model.named_modules()
        if next(module.parameters(recurse=False), None) is not None
    ]
    for name, module in owners:
        module.register_forward_hook(found.counting(name), with_kwargs=True)
    return [name for name, _ in owners]


def _check_reached(module: nn.Module, child: str, found: _Trace, name: str) -> None:
    if child not in found.children:
        raise LayoutError(
            f'model "{name}": child "{child}" never ran in the forward pass; use it or remove it'
        )
    for key, parameter in module.named_parameters():
        if parameter.grad is None:
            raise LayoutError(
                f'model "{name}": child "{child}" got no gradient for "{key}"; '
                f"use the parameter on the way to the output, or remove it"
            )


def _charge_kept(model: nn.Module, found: _Trace) -> None:
    own = {
        tensor.untyped_storage().data_ptr() for tensor in [*model.parameters(), *model.buffers()]
    }
    first = next(iter(found.children.values()))
    for address, (tensor, child) in found.kept.items():
        if address not in own:
            (child or first).kept_bytes += tensor.untyped_storage().nbytes()


def _specs(module: nn.Module, child: str) -> tuple[TensorSpec, ...]:
    parameters = {id(parameter) for parameter in module.parameters()}
    specs: dict[int, TensorSpec] = {}
    for key, tensor in module.state_dict(keep_vars=True).items():
        spec = TensorSpec(
            name=f"{child}.{key}",
            shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            kind="parameter" if id(tensor) in parameters else "buffer",
        )
        # A tensor tied inside the child has two keys; the first one stands for it.
        specs.setdefault(id(tensor), spec)
    return tuple(specs.values())
