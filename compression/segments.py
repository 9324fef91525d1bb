"""Which tensors travel, and where each lies in the flat vectors that the codec works on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import LayoutError, PacketError
from fedfreeze.layout import Layout, TensorSpec

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


# Tensors of fewer elements, or of one dimension, come last in the flat vector.
SMALL = 1024

# Values that are looked at while they are in the cache.
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Segments:
    """The float tensors of the covered layers; integer tensors and constants never travel.

    Attributes:
        layers: covered layers in forward order.
        parameters: float parameters in the order of the flat vector: the large ones in layout
            order, then the small ones, which are often coded together.
        buffers: float buffers in layout order.
        sizes: elements of each parameter.
        starts: where each parameter begins in the flat vector.
        owners: the number in ``layers`` of the layer that each parameter belongs to.
    """

    layers: tuple[str, ...]
    parameters: tuple[TensorSpec, ...]
    buffers: tuple[TensorSpec, ...]
    sizes: Ints
    starts: Ints
    owners: Ints

    @classmethod
    def of(cls, layout: Layout, layers: Iterable[str]) -> Segments:
        """The segments of some layers.

        Raises:
            LayoutError: a name is not a layer of this layout.
        """
        names = layout.ordered(layers)
        floats = [
            (owner, t) for owner, n in enumerate(names) for t in layout[n].tensors if t.travels
        ]
        parameters = [(owner, t) for owner, t in floats if t.kind == "parameter"]
        parameters.sort(key=lambda pair: pair[1].size < SMALL or len(pair[1].shape) < 2)
        sizes = np.array([t.size for _, t in parameters], np.int64)
        return cls(
            layers=names,
            parameters=tuple(t for _, t in parameters),
            buffers=tuple(t for _, t in floats if t.kind == "buffer"),
            sizes=sizes,
            starts=np.cumsum(sizes) - sizes,
            owners=np.array([owner for owner, _ in parameters], np.int64),
        )

    @property
    def parameter_count(self) -> int:
        """Length of the flat vector of parameters."""
        return int(self.sizes.sum())

    @property
    def buffer_count(self) -> int:
        """Length of the flat vector of buffers."""
        return sum(t.size for t in self.buffers)


def gather(update: Mapping[str, NDArray[np.generic]], specs: Iterable[TensorSpec]) -> Floats:
    """The values of ``specs`` one behind another.

    Raises:
        LayoutError: a tensor is missing, or not float32 of the right shape.
        PacketError: a tensor holds NaN or an infinity.
    """
    parts = [np.zeros(0, np.float32)]
    for spec in specs:
        part = _flat(update, spec)
        if not np.isfinite(part).all():
            raise _not_finite(spec)
        parts.append(part)
    return np.concatenate(parts)


@dataclass(frozen=True)
class Values:
    """Parameters as magnitudes; their signs stay in the update, which most of them never leave.

    Attributes:
        magnitudes: absolute values in the order of the flat vector.
        parts: the tensors of the update, flat.
        segments: where each lies.
        largest: of the magnitudes; 0 where there is none.
    """

    magnitudes: Floats
    parts: tuple[Floats, ...]
    segments: Segments
    largest: float

    @classmethod
    def of(cls, update: Mapping[str, NDArray[np.generic]], segments: Segments) -> Values:
        """The covered parameters.

        Raises:
            LayoutError, PacketError: as :func:`gather`.
        """
        magnitudes = np.empty(segments.parameter_count, np.float32)
        parts = tuple(_flat(update, spec) for spec in segments.parameters)
        at, largest = 0, 0.0
        for part, spec in zip(parts, segments.parameters, strict=True):
            for first in range(0, len(part), _CHUNK):
                chunk = part[first : first + _CHUNK]
                sizes = np.abs(chunk, out=magnitudes[at : at + len(chunk)])
                # NaN is the largest of all that it is among.
                most = float(sizes.max())
                if not math.isfinite(most):
                    raise _not_finite(spec)
                largest = max(largest, most)
                at += len(chunk)
        return cls(magnitudes, parts, segments, largest)

    def negative(self, indices: Ints) -> NDArray[np.bool_]:
        """Whether the values at these ascending flat indices are below 0."""
        signs = np.empty(len(indices), np.bool_)
        bounds = np.searchsorted(indices, np.append(self.segments.starts, len(self.magnitudes)))
        starts = self.segments.starts.tolist()
        for part, start, first, last in zip(
            self.parts, starts, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
        ):
            if first < last:
                np.signbit(part[indices[first:last] - start], out=signs[first:last])
        return signs


def _flat(update: Mapping[str, NDArray[np.generic]], spec: TensorSpec) -> Floats:
    if spec.name not in update:
        raise LayoutError(
            f"tensor {spec.name!r}: its layer is trained, but the update lacks it; "
            "an update holds every float tensor of every trained layer"
        )
    array = np.asarray(update[spec.name])
    if array.shape != spec.shape or array.dtype.kind != "f" or array.dtype.itemsize != 4:
        came = TensorSpec(spec.name, array.shape, array.dtype.name)
        raise LayoutError(
            f"tensor {spec.name!r}: expected float32[{', '.join(map(str, spec.shape))}], "
            f"got {came}; convert the update before it is encoded"
        )
    return array.astype(np.float32, copy=False).reshape(-1)


def _not_finite(spec: TensorSpec) -> PacketError:
    return PacketError(
        f"tensor {spec.name!r}: expected finite values, got NaN or infinity; "
        "training has diverged: lower the learning rate or clip gradients"
    )


def scatter(flat: Floats, specs: Iterable[TensorSpec]) -> dict[str, Floats]:
    """The inverse of :func:`gather`; the tensors are disjoint views of ``flat``."""
    tensors, at = {}, 0
    for spec in specs:
        tensors[spec.name] = flat[at : at + spec.size].reshape(spec.shape)
        at += spec.size
    return tensors
