"""The tracer's own division of a model into layers, at a depth that is worth freezing.

A residual block, a transformer block (see :mod:`tasks.tracing.transformer_block`), a recurrent
module, an embedding, a convolution or linear layer with its norm: each is a layer, named by the
path of its module. Containers, and modules that hold a list of blocks (a stage, an encoder, a whole
model inside another), are looked into.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from tasks.tracing.transformer_block import divided, has_attention
from tasks.tracing.units import (
    Unit,
    Uses,
    children,
    is_container,
    is_leaf,
    is_weight,
    join,
    own_tensors,
    settle,
    settle_root,
    tensors_of,
    weight_count,
)

# What holds more than half of the model's weights, and more than so many, is no layer of it.
_MOST_OF_A_BLOCK = 4


def automatic(model: nn.Module, uses: Uses) -> dict[str, str]:
    """Layer name of every tensor name, tied ones under all their names."""
    units = settle_root(_Division(model, uses).look_into(model, ""), uses)
    return {tensor: unit.name for unit in unique(units) for tensor in unit.tensors}


def unique(units: list[Unit]) -> list[Unit]:
    """The units with a number behind every name that was taken before."""
    taken: set[str] = set()
    result = []
    for unit in units:
        name, number = unit.name, 2
        while name in taken:
            name, number = f"{unit.name}-{number}", number + 1
        taken.add(name)
        result.append(replace(unit, name=name))
    return result


def merged_ties(layer_of: dict[str, str], state: dict[str, Tensor]) -> dict[str, str]:
    """The same with one layer in place of all that share a tensor: the one that holds it first."""
    stands_for = {layer: layer for layer in layer_of.values()}

    def root(layer: str) -> str:
        while stands_for[layer] != layer:
            layer = stands_for[layer]
        return layer

    holder: dict[int, str] = {}
    for name, tensor in state.items():
        first = root(holder.setdefault(id(tensor), layer_of[name]))
        stands_for[root(layer_of[name])] = first
    return {name: root(layer) for name, layer in layer_of.items()}


class _Division:
    def __init__(self, model: nn.Module, uses: Uses) -> None:
        self._uses = uses
        self._weights = weight_count(model)

    def look_into(self, module: nn.Module, path: str) -> list[Unit]:
        """The units of a module that is no layer itself."""
        units: list[Unit] = []
        loose: list[Unit] = []
        turn = 0.0
        for name in own_tensors(module, path):
            turn = self._uses.turn([name], turn)
            loose.append(Unit(name, (name,), "loose", turn))
        turn = -1.0
        for name, child in children(module).items():
            found = self._units(child, join(path, name), listed=is_container(module), after=turn)
            turn = max((unit.first for unit in found), default=turn)
            units += found
        settled = settle(units)
        if path and len(settled) == 1 and len(units) > 1 and not loose:
            return [replace(settled[0], name=path)]
        return settled + loose

    def _units(self, module: nn.Module, path: str, *, listed: bool, after: float) -> list[Unit]:
        tensors = tensors_of(module, path)
        first = self._uses.turn(tensors, after)
        if is_leaf(module):
            return [Unit(path, tensors, "weight" if is_weight(module) else "minor", first)]
        if is_container(module) or lists_blocks(module):
            return self.look_into(module, path)
        if has_attention(module):
            return divided(module, path, self._uses, first)
        weights = weight_count(module)
        if not listed and weights > max(_MOST_OF_A_BLOCK, self._weights / 2):
            return self.look_into(module, path)
        roles = {0: "minor", 1: "weight"}
        return [Unit(path, tensors, roles.get(weights, "block"), first)]  # type: ignore[arg-type]


def lists_blocks(module: nn.Module) -> bool:
    """Whether the module, or one below, lists blocks: two of them, or nothing else.

    A module without a list, but with several children that are all blocks of one class, is a list.
    """
    return any(_is_list_of_blocks(below) for below in module.modules())


def _is_list_of_blocks(module: nn.Module) -> bool:
    items = list(children(module).values())
    blocks = [item for item in items if not is_container(item) and _is_block(item)]
    if not is_container(module):
        return len(blocks) == len(items) > 1 and len({type(item) for item in items}) == 1
    return len(blocks) > 1 or (bool(blocks) and len(blocks) == len(items))


def _is_block(module: nn.Module) -> bool:
    return not is_leaf(module) and weight_count(module) > 1
