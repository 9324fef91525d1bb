"""The published model: what clients hold, the base of every delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from fedfreeze.errors import RunError
from fedfreeze.layout import Arrays, Layout


class Published:
    """The server's model with a version, and since which version each layer is as it is.

    ``version`` counts merged rounds. A client that holds version v lacks exactly the layers that
    changed after v; layers that nobody trained since are not sent to it again.
    """

    def __init__(self, layout: Layout, arrays: Arrays, version: int = 0) -> None:
        layout.check(arrays)
        self.layout = layout
        self.version = version
        self.arrays: dict[str, NDArray[Any]] = {
            name: np.array(arrays[name], copy=True) for name in layout.tensors
        }
        self.changed_at: dict[str, int] = dict.fromkeys(layout.names, version)
        self._blobs: dict[tuple[str, ...], bytes] = {}

    def advance(self, steps: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> None:
        """Add the steps (by layer, by tensor) and publish the next version.

        The sum is formed in float64 and rounded once to the tensor's own dtype.

        Raises:
            RunError: a value would not be finite; nothing is published then.
        """
        after = {
            name: self._moved(name, step)
            for tensors in steps.values()
            for name, step in tensors.items()
        }
        self.version += 1
        self._blobs.clear()
        self.arrays.update(after)
        self.changed_at.update(dict.fromkeys(steps, self.version))

    def _moved(self, name: str, step: NDArray[np.float64]) -> NDArray[Any]:
        before = self.arrays[name]
        with np.errstate(over="ignore"):
            moved = np.asarray((before.astype(np.float64) + step).astype(before.dtype))
        if not np.isfinite(moved).all():
            raise RunError(
                f"the merged step takes {name!r} out of the finite numbers; lower "
                "method.server-learning-rate or local.learning-rate"
            )
        return moved

    def lacking(self, held_version: int | None) -> tuple[str, ...]:
        """Layers that a client with ``held_version`` (None: nothing) must be sent."""
        if held_version is None or held_version > self.version:
            return self.layout.names
        return tuple(name for name in self.layout.names if self.changed_at[name] > held_version)

    def blob(self, layers: tuple[str, ...]) -> bytes:
        """The dense tensors of ``layers`` as one safetensors file.

        The same layers give the same object, which Flower then stores and sends once.
        """
        if layers not in self._blobs:
            self._blobs[layers] = save(
                {t.name: self.arrays[t.name] for name in layers for t in self.layout[name].tensors}
            )
        return self._blobs[layers]
