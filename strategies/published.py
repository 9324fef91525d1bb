"""The published model: what clients hold, the base of every delta."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from compression import encode, subtract
from fedfreeze.errors import LayoutError, RunError
from fedfreeze.layer_digest import model_digest
from fedfreeze.layout import Arrays, Layout, TensorSpec
from strategies.chain import Chain, joined
from strategies.downlink import PacketRule, added

Steps: TypeAlias = Mapping[str, Mapping[str, NDArray[np.float64]]]


class Published:
    """The server's model with a version, and since which version each layer is as it is.

    ``version`` counts merged rounds. A client that holds version v lacks exactly the layers that
    changed after v; layers that nobody trained since are not sent to it again.

    Args:
        layout: of the model.
        arrays: its tensors; they are copied.
        version: that they are.
        rule: how steps become packets; without one they are added as they are.

    Attributes:
        residual: by tensor, what steps meant and no packet has carried yet; absent is zero.
        chain: the packets of the latest versions.
    """

    def __init__(
        self, layout: Layout, arrays: Arrays, version: int = 0, rule: PacketRule | None = None
    ) -> None:
        layout.check(arrays)
        self.layout = layout
        self.version = version
        self.arrays: dict[str, NDArray[Any]] = {
            name: np.array(arrays[name], copy=True) for name in layout.tensors
        }
        self.changed_at: dict[str, int] = dict.fromkeys(layout.names, version)
        self.residual: dict[str, NDArray[np.float32]] = {}
        self.chain = Chain(sum(tensor.nbytes for tensor in layout.tensors.values()))
        self._rule = rule
        self._blobs: dict[tuple[str, ...], bytes] = {}
        self._joined: dict[int, bytes] = {}
        self._digest: str | None = None

    def advance(self, steps: Steps) -> None:
        """Publish the next version: steps (by layer, by tensor), or what a packet holds of them.

        Without a rule for packets the sum is formed in float64 and rounded once to the tensor's own
        dtype.

        Raises:
            RunError: a value would not be finite; nothing is published then.
        """
        if self._rule is None:
            after = {
                name: self._moved(name, step)
                for tensors in steps.values()
                for name, step in tensors.items()
            }
            self._publish(after, steps)
        else:
            self._advance_by_packet(steps, self._rule)

    def _advance_by_packet(self, steps: Steps, rule: PacketRule) -> None:
        layers = set(steps) | (self._owing() if rule.flushes else set())
        update = {
            spec.name: self._meant(spec, steps.get(name, {}).get(spec.name))
            for name in self.layout.ordered(layers)
            for spec in self.layout[name].tensors
            if spec.travels
        }
        sent = encode(
            update,
            self.layout,
            self.layout.ordered(layers),
            budget_bytes=rule.budget_bytes,
            round_number=self.version + 1,
            settings=rule.settings,
        )
        after = {
            name: self._finite(name, added(self.arrays[name], change))
            for name, change in sent.decoded.items()
        }
        left = {**self.residual, **subtract(update, sent.decoded)}
        self._publish(after, {self.layout.layer_of[name] for name in after})
        self.residual = {name: array for name, array in left.items() if array.any()}
        self.chain.append(self.version, sent.packet)

    def _owing(self) -> set[str]:
        return {self.layout.layer_of[name] for name in self.residual}

    def _meant(self, spec: TensorSpec, step: NDArray[np.float64] | None) -> NDArray[np.float32]:
        """``step + residual``, formed in float64 and rounded once."""
        total = np.zeros(spec.shape, np.float64) if step is None else np.asarray(step, np.float64)
        if spec.name in self.residual:
            total = total + self.residual[spec.name]
        with np.errstate(over="ignore"):
            meant = np.asarray(total.astype(np.float32))
        return self._finite(spec.name, meant)

    def _publish(self, after: Arrays, layers: Iterable[str]) -> None:
        self.version += 1
        self._blobs.clear()
        self._joined.clear()
        self._digest = None
        self.arrays.update(after)
        self.changed_at.update(dict.fromkeys(layers, self.version))

    def _moved(self, name: str, step: NDArray[np.float64]) -> NDArray[Any]:
        before = self.arrays[name]
        with np.errstate(over="ignore"):
            moved = np.asarray((before.astype(np.float64) + step).astype(before.dtype))
        return self._finite(name, moved)

    def _finite(self, name: str, moved: NDArray[Any]) -> NDArray[Any]:
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

    def has_smaller_packets(self, held_version: int) -> bool:
        """Whether packets lead from there to now in no more bytes than the layers that changed."""
        layers = self.lacking(held_version)
        packets = self.chain.since(held_version, self.version)
        if not layers or packets is None:
            return False
        dense = sum(t.nbytes for name in layers for t in self.layout[name].tensors)
        return len(self.packets(held_version)) <= dense

    def packets(self, held_version: int) -> bytes:
        """The packets from there to now, as they travel; the same call gives the same object.

        Raises:
            RunError: some of them were dropped.
        """
        if held_version not in self._joined:
            packets = self.chain.since(held_version, self.version)
            if packets is None:
                raise RunError(f"no packets lead from version {held_version} to {self.version}")
            self._joined[held_version] = joined(packets)
        return self._joined[held_version]

    @property
    def digest(self) -> str:
        """Of all values of this version."""
        if self._digest is None:
            self._digest = model_digest(self.layout, self.arrays)
        return self._digest

    def memory(self) -> dict[str, NDArray[Any]]:
        """What the next packets depend on beside the model, as arrays for a checkpoint."""
        residual = {f"residual/{name}": array for name, array in self.residual.items()}
        packets = {
            f"packet/{version}": np.frombuffer(packet, np.uint8)
            for version, packet in self.chain.packets.items()
        }
        return residual | packets

    def recall(self, memory: Arrays) -> None:
        """Take back :meth:`memory`.

        Raises:
            LayoutError: a residual is of no tensor of the layout, or of another shape.
        """
        packets = {}
        for key, array in memory.items():
            kind, _, name = key.partition("/")
            if kind == "packet":
                packets[int(name)] = array.tobytes()
                continue
            spec = self.layout.tensors.get(name)
            if spec is None or array.shape != spec.shape or array.dtype != np.float32:
                came = TensorSpec(name, tuple(array.shape), str(array.dtype))
                raise LayoutError(f"residual {name!r}: expected one of the layout, got {came}")
            self.residual[name] = np.array(array, copy=True)
        for version in sorted(packets):
            self.chain.append(version, packets[version])
