"""Which tensors travel, and where each lies in the flat vectors that the codec works on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import LayoutError, PacketError
from fedfreeze.layout import Layout, TensorSpec

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Segments:
    """The float tensors of the covered layers; integer tensors and constants never travel.

    Attributes:
        layers: covered layers in forward order.
        parameters: float parameters in layout order.
        buffers: float buffers in layout order.
        sizes: parameters of each layer.
        starts: where each layer begins in the flat vector of all parameters.
    """

    layers: tuple[str, ...]
    parameters: tuple[TensorSpec, ...]
    buffers: tuple[TensorSpec, ...]
    sizes: Ints
    starts: Ints

    @classmethod
    def of(cls, layout: Layout, layers: Iterable[str]) -> Segments:
        """The segments of some layers.

        Raises:
            LayoutError: a name is not a layer of this layout.
        """
        names = layout.ordered(layers)
        floats = [[t for t in layout[name].tensors if t.travels] for name in names]
        parameters = [[t for t in layer if t.kind == "parameter"] for layer in floats]
        sizes = np.array([sum(t.size for t in layer) for layer in parameters], np.int64)
        return cls(
            layers=names,
            parameters=tuple(t for layer in parameters for t in layer),
            buffers=tuple(t for layer in floats for t in layer if t.kind == "buffer"),
            sizes=sizes,
            starts=np.cumsum(sizes) - sizes,
        )

    @property
    def parameter_count(self) -> int:
        """Length of the flat vector of parameters."""
        return sum(t.size for t in self.parameters)

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
        if not np.isfinite(array).all():
            raise PacketError(
                f"tensor {spec.name!r}: expected finite values, got NaN or infinity; "
                "training has diverged: lower the learning rate or clip gradients"
            )
        parts.append(array.astype(np.float32, copy=False).reshape(-1))
    return np.concatenate(parts)


def scatter(flat: Floats, specs: Iterable[TensorSpec]) -> dict[str, Floats]:
    """The inverse of :func:`gather`; the tensors are disjoint views of ``flat``."""
    tensors, at = {}, 0
    for spec in specs:
        tensors[spec.name] = flat[at : at + spec.size].reshape(spec.shape)
        at += spec.size
    return tensors
