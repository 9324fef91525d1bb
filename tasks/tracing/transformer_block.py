"""A block with attention, divided so that the attention kernel can freeze by itself.

Of a block ``B`` whose attention is the module ``B.attn`` (whatever it is called):

- ``B.attn.qk``: everything that shapes the attention weights: query and key projections, their
  norms, relative position bias, rotary tables, temperature;
- ``B.attn.v``: the value projection, and the norm that feeds the attention;
- ``B.attn.out``: the rest of the attention: output projection, its scale, its norm where norms come
  after;
- ``B.pre``: convolutions and the like before the attention, where there are any;
- ``B.mlp``: the rest of the block.

Query, key and value must be modules of their own; :func:`tasks.tracing.split_attention` sees to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch import nn

from tasks.tracing.units import (
    NEVER,
    Unit,
    Uses,
    children,
    is_leaf,
    is_norm,
    is_weight,
    join,
    own_tensors,
    tensors_of,
)

_QUERY = frozenset({"q", "query", "q_proj", "to_q", "q_lin", "q_linear", "linear_q", "wq"})
_KEY = frozenset(name.replace("query", "key").replace("q", "k") for name in _QUERY)
_VALUE = frozenset(name.replace("query", "value").replace("q", "v") for name in _QUERY)

# Names of further tensors and modules that shape the attention weights.
_KERNEL = re.compile(
    r"^(q|k|query|key)_?(norm|ln|layernorm|bias)|(norm|ln|layernorm|bias)_?(q|k|query|key)$"
    r"|rel(ative)?_?(pos|attention|coords)|distance_embedding|attention_bias|cpb"
    r"|rope|rotary|^(logit_|log_)?scale$|temperature"
)
_VALUE_EXTRAS = re.compile(r"^(v|value)_?(norm|bias)|(norm|bias)_?(v|value)$")


def has_attention(module: nn.Module) -> bool:
    """Whether query, key and value projections are found in the module."""
    return any(_projections(below) for below in module.modules())


def divided(block: nn.Module, path: str, uses: Uses, first: float) -> list[Unit]:
    """The block's layers; an attention by itself has no ``.mlp``."""
    if _projections(block) or any(_is_split(child) for child in children(block).values()):
        return _attention_units(block, path, uses, first)
    attentions = {n: child for n, child in children(block).items() if has_attention(child)}
    layer_of: dict[str, str] = {}
    pieces = _pieces(block, path, uses, frozenset(attentions))
    for name, attention in attentions.items():
        units = _attention_units(attention, join(path, name), uses, first)
        layer_of.update({tensor: unit.name for unit in units for tensor in unit.tensors})
        turn = min(unit.first for unit in units)
        pieces.append(_Piece((), turn, join(path, name), is_anchor=True, is_norm=False))
    layer_of |= _outside(sorted(pieces, key=lambda piece: piece.turn), path)
    return _as_units(tensors_of(block, path), layer_of, uses, first)


@dataclass(frozen=True)
class _Piece:
    """An attention, or an indivisible piece of the block beside its attentions.

    Attributes:
        attention: its path; empty for other pieces.
        is_anchor: whether it is an attention or holds a weight; all else is about an anchor.
    """

    tensors: tuple[str, ...]
    turn: float
    attention: str
    is_anchor: bool
    is_norm: bool


def _pieces(block: nn.Module, path: str, uses: Uses, without: frozenset[str]) -> list[_Piece]:
    found = []
    for below, module in block.named_modules():
        if below.partition(".")[0] in without or module is block:
            continue
        leaf = is_leaf(module)
        at = join(path, below)
        tensors = tensors_of(module, at) if leaf else own_tensors(module, at)
        turn = uses.turn(tensors, NEVER)
        weight, norm = leaf and is_weight(module), leaf and is_norm(module)
        if tensors:
            found.append(_Piece(tensors, turn, "", is_anchor=weight, is_norm=norm))
    found += [
        _Piece((name,), uses.turn([name], NEVER), "", is_anchor=False, is_norm=False)
        for name in own_tensors(block, path)
    ]
    return found


def _outside(pieces: list[_Piece], path: str) -> dict[str, str]:
    """Layers of the tensors beside the attentions, from the pieces in forward order.

    Where the first attention has a norm before it, norms come first in this block: the last norm
    before an anchor feeds it. Every other small piece (a scale, a norm where norms come after)
    follows on the anchor before it, if there is one.
    """
    attention = next(at for at, piece in enumerate(pieces) if piece.attention)
    norms_first = any(piece.is_norm for piece in pieces[:attention])
    layer_of: dict[str, str] = {}
    for at, piece in enumerate(pieces):
        before = next((other for other in reversed(pieces[:at]) if other.is_anchor), None)
        coming = pieces[at + 1 :]
        after = next((other for other in coming if other.is_anchor), None)
        rest = layer = join(path, "mlp" if at > attention else "pre")
        if piece.turn < NEVER and not piece.is_anchor:
            between = coming[: coming.index(after)] if after else []
            is_last = piece.is_norm and not any(other.is_norm for other in between)
            is_feeding = (norms_first and is_last) or before is None
            if is_feeding and after is not None:
                layer = join(after.attention, "v") if after.attention else rest
            elif before is not None and before.attention:
                layer = join(before.attention, "out")
        layer_of.update(dict.fromkeys(piece.tensors, layer))
    return layer_of


def _projections(module: nn.Module) -> tuple[str, str, str] | None:
    """The names of the children that project to query, key and value."""
    names = [name for name, child in module.named_children() if is_leaf(child)]
    both = next((name for name in names if name in ("qk", "to_qk")), None)
    found = [next((n for n in names if n in known), both) for known in (_QUERY, _KEY)]
    found.append(next((name for name in names if name in _VALUE), None))
    query, key, value = found
    return (query, key, value) if query and key and value else None


def _is_split(module: nn.Module) -> bool:
    """Whether the module is nothing but the three projections."""
    return _projections(module) is not None and len(children(module)) == len("qkv")


def _attention_units(attention: nn.Module, path: str, uses: Uses, first: float) -> list[Unit]:
    kernel: set[str] = set()
    value: set[str] = set()
    for below, module in attention.named_modules():
        if (names := _projections(module)) is not None:
            at = join(path, below) if below else path
            of = [tensors_of(module.get_submodule(name), join(at, name)) for name in names]
            kernel.update(*of[:2])
            value.update(of[2])
    tensors = tensors_of(attention, path)
    projected = uses.turn([*kernel, *value], NEVER)
    feeding = {
        name
        for below, module in attention.named_modules()
        if is_leaf(module) and is_norm(module)
        for name in tensors_of(module, join(path, below) if below else path)
        if uses.turn([name], NEVER) < projected
    }
    layer_of = {}
    for name in tensors:
        parts = name[len(path) + 1 if path else 0 :].split(".")
        if name in kernel:
            part = "qk"
        elif name in value:
            part = "v"
        elif any(_KERNEL.search(part) for part in parts):
            part = "qk"
        elif any(_VALUE_EXTRAS.search(part) for part in parts) or name in feeding:
            part = "v"
        else:
            part = "out"
        layer_of[name] = join(path, part)
    return _as_units(tensors, layer_of, uses, first)


def _as_units(
    tensors: tuple[str, ...], layer_of: dict[str, str], uses: Uses, first: float
) -> list[Unit]:
    return [
        Unit(layer, named, "block", uses.turn(named, first))
        for layer in dict.fromkeys(layer_of[name] for name in tensors)
        if (named := tuple(name for name in tensors if layer_of[name] == layer))
    ]
