"""Units: what grouping works on, and how small ones join their neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

# A weight is one convolution, linear layer or the like; a block is several things that stay
# together; a minor (a norm, a scale, lone buffers) joins a neighbour; a loose tensor hangs directly
# on a module that is no layer (a class token, a position embedding).
Role = Literal["weight", "block", "minor", "loose"]

# The turn of what is not used.
NEVER = math.inf

RECURRENT = (nn.RNNBase, nn.RNNCellBase)
_WEIGHTS = (nn.Linear, nn.modules.conv._ConvNd, nn.Embedding, nn.EmbeddingBag, *RECURRENT)  # noqa: SLF001
_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


@dataclass(frozen=True)
class Unit:
    """Tensors that stay together.

    Attributes:
        name: of the layer that it becomes: a module's path as a rule.
        tensors: names in the model's state.
        first: the turn of its first use; what is never used stands behind its neighbour.
    """

    name: str
    tensors: tuple[str, ...]
    role: Role
    first: float

    def with_tensors(self, other: Unit) -> Unit:
        """The same unit with the tensors of another one as well."""
        return replace(
            self, tensors=self.tensors + other.tensors, first=min(self.first, other.first)
        )


@dataclass(frozen=True)
class Uses:
    """What the tape knows of the model's tensors.

    Attributes:
        first: the turn of the first use; absent for a tensor that is never used.
        weights: names of parameters that multiply data as matrices or kernels.
    """

    first: Mapping[str, int]
    weights: frozenset[str]

    def turn(self, tensors: Iterable[str], otherwise: float) -> float:
        """The turn of the first use of any of them."""
        return min((self.first[name] for name in tensors if name in self.first), default=otherwise)


def join(path: str, name: str) -> str:
    """``a.b`` from ``a`` and ``b``; the root has the empty path."""
    return f"{path}.{name}" if path else name


def tensors_of(module: nn.Module, path: str) -> tuple[str, ...]:
    """Names in the model's state of the tensors in a module and below."""
    state = module.state_dict(keep_vars=True)
    return tuple(join(path, name) for name, value in state.items() if isinstance(value, Tensor))


def children(module: nn.Module) -> dict[str, nn.Module]:
    """Children with tensors; parametrisations are part of the module that they belong to."""
    return {
        name: child
        for name, child in module._modules.items()  # noqa: SLF001  # one under two names counts
        if child is not None and name != "parametrizations" and tensors_of(child, "")
    }


def own_tensors(module: nn.Module, path: str) -> tuple[str, ...]:
    """Names of the tensors that hang on the module itself, parametrised ones included."""
    below = {name for child, of in children(module).items() for name in tensors_of(of, child)}
    return tuple(join(path, name) for name in tensors_of(module, "") if name not in below)


def is_container(module: nn.Module) -> bool:
    """Whether the module only lists others."""
    return isinstance(module, _CONTAINERS) and not own_tensors(module, "")


def is_leaf(module: nn.Module) -> bool:
    """Whether nothing inside can be told apart: the pieces of a recurrent layer run step by step.

    An ``nn.LSTM`` of several layers keeps all of them in one module and one kernel call.
    """
    return isinstance(module, RECURRENT) or not children(module)


def weight_count(module: nn.Module) -> int:
    """How many convolutions, linear layers and the like a module holds."""
    return sum(is_weight(leaf) for leaf in leaves(module))


def leaves(module: nn.Module) -> list[nn.Module]:
    """The modules below that cannot be divided."""
    if is_leaf(module):
        return [module]
    return [leaf for child in children(module).values() for leaf in leaves(child)]


def is_norm(module: nn.Module) -> bool:
    """Whether the module normalises: by its class, or by the name of it."""
    known = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)  # noqa: SLF001
    return isinstance(module, known) or "norm" in type(module).__name__.lower()


def is_weight(leaf: nn.Module) -> bool:
    """Whether an indivisible module holds a matrix or a kernel; ``[c, 1, 1]`` is only a scale."""
    if is_norm(leaf):
        return False
    return isinstance(leaf, _WEIGHTS) or any(p.squeeze().dim() > 1 for p in leaf.parameters())


def settle(units: list[Unit]) -> list[Unit]:
    """The units in forward order, minors with the neighbour that they belong to.

    A minor joins the convolution or linear layer right before it, else whatever comes after it. A
    minor with nothing behind it stays, for the level above to settle.
    """
    settled: list[Unit] = []
    waiting: list[Unit] = []
    for unit in sorted(units, key=lambda unit: unit.first):
        if unit.role == "loose":
            settled.append(unit)
        elif unit.role == "minor":
            firm = [at for at, other in enumerate(settled) if other.role != "loose"]
            if firm and not waiting and settled[firm[-1]].role == "weight":
                settled[firm[-1]] = settled[firm[-1]].with_tensors(unit)
            else:
                waiting.append(unit)
        else:
            for minor in waiting:
                unit = unit.with_tensors(minor)  # noqa: PLW2901  # it grows
            waiting = []
            settled.append(unit)
    return settled + waiting


def settle_root(units: list[Unit], uses: Uses) -> list[Unit]:
    """No minor and no loose tensor is left, unless the model has nothing else.

    A loose matrix that multiplies data is a layer; another loose tensor joins what was used before
    it, or else what comes next.
    """
    promoted = [
        replace(unit, role="weight")
        if unit.role == "loose" and uses.weights.intersection(unit.tensors)
        else unit
        for unit in units
    ]
    settled = settle(promoted)
    firm = [unit for unit in settled if unit.role in ("weight", "block")]
    if not firm:
        return [replace(unit, role="weight") for unit in settled]
    for unit in settled:
        if unit.role in ("weight", "block"):
            continue
        order = sorted(range(len(firm)), key=lambda at: firm[at].first)
        earlier = [at for at in order if firm[at].first <= unit.first]
        host = earlier[-1] if earlier else order[0]
        first = firm[host].first
        firm[host] = replace(firm[host].with_tensors(unit), first=first)
    return firm
