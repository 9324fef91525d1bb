"""Random updates with everything that ``encode`` takes: shapes, values, budgets and options.

Made of a seed alone, so that a case that fails can be made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compression import CodecSettings
from fedfreeze.layout import Layer, Layout, TensorSpec

LARGEST = float(np.finfo(np.float32).max)
Random = np.random.Generator


@dataclass(frozen=True)
class Case:
    """What one call of ``encode`` is given.

    Attributes:
        layout: of the model.
        layers: that are covered.
        update: of every float tensor of the layout.
        options: all other arguments.
    """

    layout: Layout
    layers: list[str]
    update: dict[str, np.ndarray]
    options: dict[str, Any]


def case(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    return _network(rng) if rng.random() < 0.5 else _anything(rng)


def _network(rng: Random) -> Case:
    """Crowded matrices and a vector beside each, at budgets where classes of rows pay.

    Here what drafts choose for some values is used for others, of which one row may have more, so
    that the shape has room for a class too few.
    """
    layers, update = [], {}
    for index in range(int(rng.integers(1, 6))):
        shape = _barely_classed(rng)
        specs = (
            TensorSpec(f"{index}.weight", shape, "float32"),
            TensorSpec(f"{index}.bias", shape[:1], "float32"),
        )
        layers.append(Layer(str(index), specs))
        for spec in specs:
            values = _crowded(rng, spec.shape) * np.exp(rng.normal(0, 1))
            update[spec.name] = np.asarray(values, np.float32)
    layout = Layout("random", tuple(layers))
    options = _options(rng, layout, list(layout.names))
    dense = 4 * sum(t.size for t in layout.tensors.values())
    options["budget_bytes"] = 60 + int(dense / np.exp(rng.uniform(np.log(4), np.log(200))))
    if rng.random() < 0.6:
        options = {name: options[name] for name in ("budget_bytes", "round_number")}
        options["settings"] = CodecSettings(effort=_one_of(rng, ["fast", "thorough"]))
        if rng.random() < 0.3:
            options["floors"] = {layout.names[-1]: int(rng.choice([8, 60, 400]))}
    return Case(layout, list(layout.names), update, options)


def _barely_classed(rng: Random) -> tuple[int, ...]:
    """A shape with room for about so many groups: 6 x (groups x rows + columns) is its size."""
    inner = _one_of(rng, [(), (), (), (1,), (3, 3)])
    rows, groups = int(rng.integers(8, 72)), int(rng.integers(3, 13))
    columns = -(-6 * groups * rows // (rows * int(np.prod(inner)) - 6)) + int(rng.integers(-1, 3))
    return rows, columns, *inner


def _anything(rng: Random) -> Case:
    layout = _layout(rng)
    chosen = [name for name in layout.names if rng.random() < 0.85]
    layers = chosen or ([] if rng.random() < 0.3 else [layout.names[0]])
    values = _one_of(rng, VALUES)
    update = {
        t.name: _scaled(rng, values(rng, t.shape) if rng.random() < 0.8 else _any(rng, t.shape))
        for t in layout.tensors.values()
        if t.is_float
    }
    if rng.random() < 0.5:  # all of about one size, as in a network
        scale = _scale(rng)
        with np.errstate(over="ignore", invalid="ignore"):
            update = {n: _finite(values(rng, array.shape) * scale) for n, array in update.items()}
    return Case(layout, layers, update, _options(rng, layout, layers))


def _layout(rng: Random) -> Layout:
    layers = []
    for index in range(int(rng.integers(1, 6))):
        specs = []
        for place in range(int(rng.integers(1, 4))):
            kind = "buffer" if rng.random() < 0.12 else "parameter"
            shape = _one_of(rng, SHAPES)(rng)
            specs.append(TensorSpec(f"{index}.{place}", shape, "float32", kind))
        if rng.random() < 0.1:
            specs.append(TensorSpec(f"{index}.count", (), "int64", "buffer"))
        layers.append(Layer(str(index), tuple(specs)))
    return Layout("random", tuple(layers))


def _below(rng: Random, most: int) -> int:
    """From 1 to ``most``, small ones as often as large ones."""
    return int(np.exp(rng.uniform(0, np.log(most + 0.99))))


SHAPES: list[Callable[[Random], tuple[int, ...]]] = [
    lambda rng: (),
    lambda rng: (int(rng.integers(0, 3)),),
    lambda rng: (int(rng.integers(0, 2)), int(rng.integers(0, 4))),
    lambda rng: (_below(rng, 500),),
    lambda rng: (1, _below(rng, 3000)),
    lambda rng: (_below(rng, 3000), 1),
    lambda rng: (_below(rng, 130), _below(rng, 130)),
    lambda rng: (int(rng.integers(4, 70)), int(rng.integers(4, 70))),
    lambda rng: (int(rng.integers(8, 20)), int(rng.integers(80, 200))),
    lambda rng: (int(rng.integers(80, 200)), int(rng.integers(8, 20))),
    lambda rng: (_below(rng, 30), _below(rng, 30), _below(rng, 9)),
    lambda rng: (_below(rng, 40), _below(rng, 40), 3, 3),
    lambda rng: (_below(rng, 60), 1, 3, 3),
    lambda rng: (_below(rng, 60), _below(rng, 60), 1, 1),
]


def _normal(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape)


def _heavy(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    return rng.laplace(size=shape) ** int(rng.integers(1, 8))


def _crowded(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    """Loud and quiet rows and columns."""
    values = np.asarray(rng.laplace(size=shape))
    for axis, length in enumerate(shape[:2]):
        loud = np.exp(rng.normal(0, rng.uniform(0, 3), length))
        values = values * loud.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return values


def _tied(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    return rng.choice([0.0, -0.0, 1.0, -1.0, 2.0, 7.5], size=shape)


def _constant(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    return np.full(shape, rng.choice([0.0, 1.0, -1.0]))


def _positive(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    return np.abs(rng.normal(size=shape)) + rng.uniform(0, 5)


def _sparse(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape) * (rng.random(shape) < rng.choice([0.01, 0.1, 0.5]))


def _wide(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    """Any float32, subnormal ones among them."""
    words = np.asarray(rng.integers(0, 2**32, size=shape, dtype=np.uint64), np.uint32)
    return np.nan_to_num(words.view(np.float32), nan=0.0)


VALUES = [_normal, _heavy, _crowded, _crowded, _tied, _constant, _positive, _sparse, _wide]


def _any(rng: Random, shape: tuple[int, ...]) -> np.ndarray:
    return _one_of(rng, VALUES)(rng, shape)


def _scale(rng: Random) -> float:
    return float(10.0 ** rng.choice([0.0, rng.uniform(-3, 3), rng.uniform(-46, 39)]))


def _scaled(rng: Random, values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite(values * _scale(rng))


def _finite(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(np.nan_to_num(values), -LARGEST, LARGEST), np.float32)


def _options(rng: Random, layout: Layout, layers: list[str]) -> dict[str, Any]:
    mode = str(rng.choice(["sparse"] * 8 + ["dense", "literal"]))
    options: dict[str, Any] = {
        "budget_bytes": _budget_bytes(rng, layout, layers),
        "round_number": int(rng.choice([0, 1, 77, 2**32 - 1])),
    }
    chosen: dict[str, Any] = {"mode": mode}
    if mode == "dense":
        chosen["bits"] = int(rng.choice([8, 16, 32]))
    elif rng.random() < 0.25:
        chosen["density"] = float(rng.choice([1e-6, 0.003, 0.1, 0.5, 1.0, rng.random() or 1.0]))
    if mode == "literal" and rng.random() < 0.5:
        ranges = {name: _scale(rng) for name in layers if rng.random() < 0.7}
        options["ranges"] = ranges
    if mode == "sparse":
        _sparse_options(rng, layout, options, chosen)
    options["settings"] = CodecSettings(**chosen)
    return options


def _budget_bytes(rng: Random, layout: Layout, layers: list[str]) -> int:
    dense = 4 * sum(t.size for name in layers for t in layout[name].tensors)
    kind = rng.random()
    if kind < 0.1:
        return int(rng.integers(0, 60))
    if kind < 0.2:
        return int(rng.integers(0, 2 * dense + 60))
    return 30 + int(dense / np.exp(rng.uniform(np.log(2), np.log(600))))


def _sparse_options(
    rng: Random, layout: Layout, options: dict[str, Any], chosen: dict[str, Any]
) -> None:
    chosen["effort"] = str(rng.choice(["fast", "thorough"]))
    chosen["structured"] = bool(rng.random() < 0.85)
    chosen["affine"] = bool(rng.random() < 0.85)
    if rng.random() < 0.15:
        chosen["value_bits"] = int(rng.integers(1, 17))
    if rng.random() < 0.15:
        chosen["fineness"] = float(rng.choice([1.0, 1.7, 4.0, 64.0]))
    if rng.random() < 0.15:
        options["step"] = float(rng.choice([2.0**-126, 1e-9, 0.01, 0.4, 5.0, 1e30, LARGEST]))
    if rng.random() < 0.3:
        options["floors"] = {
            name: int(rng.choice([0, 1, 8, 60, 400, 10**6]))
            for name in layout.names
            if rng.random() < 0.5
        }
    if rng.random() < 0.3:
        options["importance"] = _importance(rng, layout)
    if rng.random() < 0.15 and "density" not in chosen:
        share = float(rng.choice([0.0, 0.01, 0.1, 0.5, 1.0]))
        options["positions"] = {
            t.name: np.flatnonzero(rng.random(t.size) < share)
            for t in layout.tensors.values()
            if rng.random() < 0.9
        }


def _importance(rng: Random, layout: Layout) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for layer in layout:
        if rng.random() < 0.3:
            found[layer.name] = float(4.0 ** rng.uniform(-9, 9))
        for tensor in layer.parameters:
            kind = rng.random()
            if kind < 0.15:
                found[tensor.name] = float(4.0 ** rng.uniform(-9, 9))
            elif kind < 0.35 and tensor.shape and tensor.shape[0]:
                found[tensor.name] = 4.0 ** rng.uniform(-4, 4, tensor.shape[0])
    return found


def _one_of(rng: Random, choices: list[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]
