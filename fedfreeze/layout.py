"""The layout: a model's freezable layers in forward order, as both ends know it.

It holds no values and needs no torch: the server plans from it, the codec sizes its work by it,
and everything that arrives from the network is checked against it before memory is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedfreeze.errors import LayoutError

# A constant is a parameter that the model's author froze: part of the model, never trained.
Kind = Literal["parameter", "buffer", "constant"]
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of a layer, by its name in the model's state."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: Kind = "parameter"

    @property
    def size(self) -> int:
        """Number of elements (1 for a scalar)."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense tensor."""
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def is_float(self) -> bool:
        """Whether the tensor holds floating-point values."""
        return np.issubdtype(np.dtype(self.dtype), np.floating)

    @property
    def travels(self) -> bool:
        """Whether an update of its layer holds the tensor; others are the server's alone."""
        return self.is_float and self.kind != "constant"

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class LayerCosts:
    """What one example costs in one layer; traced from the model, never a table.

    Attributes:
        forward_flops: of the forward pass.
        input_grad_flops: of the gradient towards the layer's input.
        weight_grad_flops: of the gradient of the layer's own parameters.
        activation_bytes: kept for the backward pass when it reaches this layer.
        inner_grad_flops: the part of ``input_grad_flops`` that stays inside the layer, and so is
            spent even where nothing before the layer trains.
        spared_bytes: the part of ``activation_bytes`` that only the gradient of the layer's own
            parameters needs, and so is not kept where the layer is frozen.
        transient_bytes: held for a moment beside what is kept, at worst, forward or backward.
        forward_bytes: held at worst while the layer runs forward and nothing is kept.
    """

    forward_flops: float = 0.0
    input_grad_flops: float = 0.0
    weight_grad_flops: float = 0.0
    activation_bytes: float = 0.0
    inner_grad_flops: float = 0.0
    spared_bytes: float = 0.0
    transient_bytes: float = 0.0
    forward_bytes: float = 0.0


@dataclass(frozen=True)
class Layer:
    """A named freezable unit: its parameters and buffers, and what it costs.

    Attributes:
        cut_bytes: of an example, of the tensor that the layers behind this one read, if there is
            exactly one (and it is no function of the input alone); else, and for the last layer,
            None. Where it is a number, the layers up to here can run by themselves, and their
            result can be kept.
    """

    name: str
    tensors: tuple[TensorSpec, ...]
    costs: LayerCosts = field(default_factory=LayerCosts)
    cut_bytes: float | None = None

    @cached_property
    def parameters(self) -> tuple[TensorSpec, ...]:
        """The tensors that gradients change."""
        return tuple(t for t in self.tensors if t.kind == "parameter")

    @cached_property
    def parameter_count(self) -> int:
        """Number of trainable values."""
        return sum(t.size for t in self.parameters)

    @cached_property
    def parameter_bytes(self) -> int:
        """Bytes of the dense parameters."""
        return sum(t.nbytes for t in self.parameters)

    @cached_property
    def float_bytes(self) -> int:
        """Bytes of the dense tensors that an update of the layer holds."""
        return sum(t.nbytes for t in self.tensors if t.travels)


@dataclass(frozen=True)
class Layout:
    """The ordered layers of one model.

    Raises:
        LayoutError: no layer, an empty layer name, or a name that stands twice.
    """

    model: str
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        if not self.layers:
            raise LayoutError(f'model "{self.model}" has no layer: it needs at least one parameter')
        for what, names in (
            ("layer", [layer.name for layer in self.layers]),
            ("tensor", [t.name for layer in self.layers for t in layer.tensors]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice or "" in names:
                raise LayoutError(
                    f'model "{self.model}": every {what} needs a name of its own, '
                    f"got {', '.join(map(repr, twice or ['']))} more than once or empty"
                )

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Layer names in forward order."""
        return tuple(layer.name for layer in self.layers)

    @cached_property
    def tensors(self) -> dict[str, TensorSpec]:
        """Every tensor by name, in layer order."""
        return {t.name: t for layer in self.layers for t in layer.tensors}

    @cached_property
    def layer_of(self) -> dict[str, str]:
        """Layer name of every tensor name."""
        return {t.name: layer.name for layer in self.layers for t in layer.tensors}

    @cached_property
    def parameter_count(self) -> int:
        """Number of trainable values in all layers."""
        return sum(layer.parameter_count for layer in self.layers)

    @cached_property
    def parameter_bytes(self) -> int:
        """Bytes of all dense parameters: what one dense FedAvg update carries."""
        return sum(layer.parameter_bytes for layer in self.layers)

    @cached_property
    def state_bytes(self) -> int:
        """Bytes of all tensors: what a copy of the model takes."""
        return sum(t.nbytes for layer in self.layers for t in layer.tensors)

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over names, shapes, dtypes and kinds of all tensors; no costs, no cuts."""
        canonical = [
            [layer.name, [[t.name, list(t.shape), t.dtype, t.kind] for t in layer.tensors]]
            for layer in self.layers
        ]
        text = json.dumps(canonical, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __getitem__(self, name: str) -> Layer:
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise LayoutError(f'no layer "{name}"; the layers are {", ".join(self.names)}')

    def ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        """The given layers in forward order, each once.

        Raises:
            LayoutError: a name is not a layer of this layout.
        """
        wanted = set(names)
        if unknown := sorted(wanted - set(self.names)):
            raise LayoutError(
                f"no layer {', '.join(map(repr, unknown))}; the layers are {', '.join(self.names)}"
            )
        return tuple(name for name in self.names if name in wanted)

    def check(self, arrays: Arrays, layers: Iterable[str] | None = None, sender: str = "") -> None:
        """Refuse arrays that are not exactly the tensors of ``layers`` (default: of all).

        Raises:
            LayoutError: a tensor is missing, unknown, or of another shape or dtype.
        """
        chosen = self.names if layers is None else self.ordered(layers)
        expected = {t.name: t for name in chosen for t in self[name].tensors}
        source = f"{sender} sent" if sender else "got"
        if missing := [name for name in expected if name not in arrays]:
            raise LayoutError(f"expected tensor {missing[0]!r}, {source} none of that name")
        if unknown := [name for name in arrays if name not in expected]:
            raise LayoutError(f"{source} tensor {unknown[0]!r}, which the layout does not expect")
        for name, spec in expected.items():
            array = arrays[name]
            if array.shape != spec.shape or array.dtype != np.dtype(spec.dtype):
                came = TensorSpec(name, tuple(array.shape), str(array.dtype))
                raise LayoutError(f"tensor {name!r}: expected {spec}, {source} {came}")

    def to_json(self) -> dict[str, Any]:
        """The layout as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Layout:
        """The inverse of :meth:`to_json`."""
        return cls(
            model=data["model"],
            layers=tuple(
                Layer(
                    name=layer["name"],
                    tensors=tuple(
                        TensorSpec(t["name"], tuple(t["shape"]), t["dtype"], t["kind"])
                        for t in layer["tensors"]
                    ),
                    costs=LayerCosts(**layer["costs"]),
                    cut_bytes=layer.get("cut_bytes"),
                )
                for layer in data["layers"]
            ),
        )
