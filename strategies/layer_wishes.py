"""Which layers a packet must not starve, and where an error counts more.

From ``[compression] floors``, ``boost`` and ``boost-by`` to what :func:`compression.encode` takes.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layer, Layout, TensorSpec

LEAST_VALUES = 8
LAST_LAYER_SHARE = 0.001
MAX_WEIGHT = 4.0**7
MIN_WEIGHT = 1 / MAX_WEIGHT
_ROWS = re.compile(r"(?P<glob>.+)\[(?P<first>\d+)(?::(?P<last>\d+))?\]")


def rows_of(pattern: str) -> tuple[str, slice | None]:
    """A glob, and the rows that it is limited to.

    Raises:
        ValueError: brackets that hold no row or range of rows.

    >>> rows_of("head.*"), rows_of("head.weight[3]"), rows_of("head.weight[0:4]")
    (('head.*', None), ('head.weight', slice(3, 4, None)), ('head.weight', slice(0, 4, None)))
    """
    if not pattern.endswith("]"):
        return pattern, None
    match = _ROWS.fullmatch(pattern)
    if match is None:
        raise ValueError(
            f'expected rows as in "head.weight[3]" or "head.weight[0:4]", got "{pattern}"'
        )
    first = int(match["first"])
    last = first + 1 if match["last"] is None else int(match["last"])
    if last <= first:
        raise ValueError(f'"{pattern}": expected a range of rows that is not empty')
    return match["glob"], slice(first, last)


def floors_of(layout: Layout, shares: Mapping[str, float] | None) -> dict[str, int]:
    """Least values of each key layer: its share, 8 at least; of several globs the highest.

    Args:
        layout: of the model.
        shares: by glob over layer names; None for a thousandth of the last layer.

    Raises:
        ConfigError: a glob that no layer has.
    """
    if shares is None:
        last = layout.layers[-1]
        return {last.name: _least(last, LAST_LAYER_SHARE)}
    floors: dict[str, int] = {}
    for glob, share in shares.items():
        for layer in _matching("floors", glob, layout.layers):
            if share:
                floors[layer.name] = max(floors.get(layer.name, 0), _least(layer, share))
    return floors


def importance_of(
    layout: Layout,
    boost: Mapping[str, float] | None,
    mean_squares: Mapping[str, float] | None = None,
) -> dict[str, float | NDArray[np.float64]]:
    """The weight of each tensor that has one, or of each of its rows; of several globs the highest.

    What nothing names has a weight of 1, so weights below 1 are for what may be sent more coarsely.

    Args:
        layout: of the model.
        boost: weights by glob over layers or tensors, with or without rows, if there are any.
        mean_squares: mean squared gradient of a parameter of each trained layer, by which the
            weights of its tensors are multiplied (:func:`measured_weights`); None for globs alone.

    Raises:
        ConfigError: a glob that nothing has, or rows that a tensor has not.
    """
    weights = _by_globs(layout, boost or {})
    for layer, measured in measured_weights(mean_squares or {}).items():
        for tensor in layout[layer].parameters:
            weights[tensor.name] = weights.get(tensor.name, 1.0) * measured
    return weights


def measured_weights(mean_squares: Mapping[str, float]) -> dict[str, float]:
    """How much a squared error counts in each trained layer, by its gradients in this round.

    To first order an error e in the parameters changes the loss by g e, with g the gradient. Where
    e does not depend on g, the expected square of that is the sum of e^2 over a layer, times the
    mean of its g^2. Importance by gradients is FedFreeze's I; its square is the diagonal of the
    empirical Fisher matrix, by which Kirkpatrick et al. (2017) weigh what must not be lost.

    Args:
        mean_squares: mean of g^2 over parameters and steps, by layer.

    Returns:
        Each over the median of those that are finite and above 0, within what the codec tells
        apart; nothing if there are none.

    >>> measured_weights({"stem": 2e-6, "body": 1e-6, "head": 64e-6})
    {'stem': 1.0, 'body': 0.5, 'head': 32.0}
    """
    moved = [square for square in mean_squares.values() if 0 < square < math.inf]
    if not moved:
        return {}
    median = statistics.median(moved)
    return {
        layer: min(max(square / median, MIN_WEIGHT), MAX_WEIGHT)
        for layer, square in mean_squares.items()
    }


def _by_globs(layout: Layout, boost: Mapping[str, float]) -> dict[str, float | NDArray[np.float64]]:
    """Of each tensor that a glob names, with NaN for the rows that none has named yet."""
    weights: dict[str, float | NDArray[np.float64]] = {}
    for pattern, weight in boost.items():
        glob, rows = rows_of(pattern)
        named = [t for layer in layout for t in layer.tensors if fnmatchcase(layer.name, glob)]
        named = named or [t for t in layout.tensors.values() if fnmatchcase(t.name, glob)]
        tensors = [t for t in named if t.travels and t.kind == "parameter"]
        if not tensors:
            raise _nothing("boost", glob, [*layout.names, *layout.tensors])
        for tensor in tensors:
            own = weight if rows is None else _rows(tensor, rows, weight, pattern)
            before = weights.get(tensor.name, own)
            weights[tensor.name] = (
                max(own, before)
                if isinstance(own, float) and isinstance(before, float)
                else np.fmax(own, before)
            )
    return {
        name: weight if isinstance(weight, float) else np.nan_to_num(weight, nan=1.0)
        for name, weight in weights.items()
    }


def _rows(tensor: TensorSpec, rows: slice, weight: float, pattern: str) -> NDArray[np.float64]:
    count = tensor.shape[0] if tensor.shape else 0
    if rows.stop > count:
        raise ConfigError(
            f'compression.boost: "{pattern}": {tensor.name} has {count} rows, counted from 0; '
            "name some of these"
        )
    weights = np.full(count, np.nan)
    weights[rows] = weight
    return weights


def _least(layer: Layer, share: float) -> int:
    count = sum(t.size for t in layer.parameters)
    return min(max(LEAST_VALUES, math.ceil(share * count)), count)


def _matching(key: str, glob: str, layers: Iterable[Layer]) -> list[Layer]:
    found = [layer for layer in layers if fnmatchcase(layer.name, glob)]
    if not found:
        raise _nothing(key, glob, [layer.name for layer in layers])
    return found


def _nothing(key: str, glob: str, names: Iterable[str]) -> ConfigError:
    known = list(names)
    shown = ", ".join([*known[:12], "..."] if len(known) > 12 else known)
    return ConfigError(f'compression.{key}: nothing is called "{glob}"; the names are {shown}')
