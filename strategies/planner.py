"""Fitting a policy's advice to a board: one pure function, run on both sides.

The server fits with the capacity that it knows and suggests; the client fits again with the
capacity that it has now and may only freeze more. Limits bind in this order:

1. memory: only a frozen *prefix* saves activations, so layers are given up from the front;
2. uplink: a board that may send a fraction of the full budget trains at most that fraction of the
   parameters, so that its bytes are not spread too thinly; the least valued are given up first;
3. compute: fewer epochs first, then the prefix again, until the round's deadline holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from device_profiles.cost import plan_cost, training_memory_bytes
from fedfreeze.capacity import Capacity
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layout, TensorSpec
from fedfreeze.plan import Plan, PlanCost, Reason, ReasonCode, Stage
from fedfreeze.units import Dimension, written
from strategies.freeze.policy import Advice, StageAdvice


@dataclass(frozen=True)
class Limits:
    """What the strategy asks of every client, before its board is looked at.

    Attributes:
        epochs, batch_size: of local training.
        optimizer_slots: values that the optimizer keeps per parameter.
        upload_time_s: how long a board's uplink may be busy with the update.
        full_upload_bytes: packet size that the strategy allows a board with ample uplink.
        dense_bits: bits per value of a dense packet; None for a sparse one.
        deadline_s: simulated seconds for download, training and upload.
        smallest_packet_bytes: below it a packet carries nothing.
    """

    epochs: int
    batch_size: int
    optimizer_slots: int
    upload_time_s: float
    full_upload_bytes: int
    dense_bits: int | None
    deadline_s: float
    smallest_packet_bytes: int


@dataclass(frozen=True)
class Load:
    """What one client's round carries.

    Attributes:
        examples: that the client trains on.
        download_bytes: of the message that brings the plan and the layers.
        envelope_bytes: of the reply without its packet, as last measured.
    """

    examples: int
    download_bytes: int
    envelope_bytes: int


def feasible(layout: Layout, capacity: Capacity, limits: Limits) -> dict[str, bool]:
    """Per layer, whether the board's memory allows to train it with every layer above it (R)."""
    names = layout.names
    return {
        name: training_memory_bytes(layout, names[at:], limits.batch_size, limits.optimizer_slots)
        <= capacity.memory_bytes.value
        for at, name in enumerate(names)
    }


def fit(advice: Advice, *, layout: Layout, capacity: Capacity, limits: Limits, load: Load) -> Plan:
    """The plan that follows the advice as far as the board can.

    Raises:
        PlanError: not even one layer fits; names the limit that is short and by how much.
    """
    return _Fit(advice, layout, capacity, limits, load).plan()


class _Fit:
    """One run of :func:`fit`: the trained set shrinks, and every loss gets its reason."""

    def __init__(
        self, advice: Advice, layout: Layout, capacity: Capacity, limits: Limits, load: Load
    ) -> None:
        self.advice = advice
        self.layout = layout
        self.capacity = capacity
        self.limits = limits
        self.load = load
        self.frozen: dict[str, Reason] = dict(advice.frozen)
        if advice.stages:
            staged = {name for stage in advice.stages for name in stage.layers}
            for name in layout.names:
                if name not in staged:
                    self.frozen.setdefault(name, Reason("fixed", "no stage trains this layer"))
        for layer in layout:
            if not layer.parameters:
                # Whatever the policy thinks of it, and under whichever reason: it cannot train.
                self.frozen[layer.name] = Reason("fixed", "none of its parameters is trainable")
        self.trained = [name for name in layout.names if name not in self.frozen]
        self.binding = advice.binding

    def plan(self) -> Plan:
        if not self.trained:
            raise PlanError("the policy froze every layer; one at least must train", "policy")
        self._fit_memory()
        budget = self._fit_uplink()
        epochs, cost = self._fit_compute(budget)
        return Plan(
            stages=self._stages(),
            epochs=epochs,
            batch_size=self.limits.batch_size,
            upload_budget_bytes=budget,
            frozen={name: self.frozen[name] for name in self.layout.names if name in self.frozen},
            binding=self.binding,
            cost=cost,
        )

    def _give_up(self, name: str, code: ReasonCode, detail: str) -> None:
        self.trained.remove(name)
        self.frozen[name] = Reason(code, detail)
        self.binding = self.binding or code

    def _memory_bytes(self) -> float:
        return training_memory_bytes(
            self.layout, self.trained, self.limits.batch_size, self.limits.optimizer_slots
        )

    def _fit_memory(self) -> None:
        has = self.capacity.memory_bytes.value
        while (needs := self._memory_bytes()) > has:
            detail = (
                f"training from here on needs {written(needs, Dimension.BYTES)}, "
                f"the board has {written(has, Dimension.BYTES)}"
            )
            if len(self.trained) == 1:
                raise PlanError(f'"{self.trained[0]}" alone: {detail}', "memory")
            self._give_up(self.trained[0], "memory", detail)

    def _fit_uplink(self) -> int:
        limits = self.limits
        uplink = self.capacity.uplink_bytes_per_s.value * limits.upload_time_s
        budget = int(min(uplink - self.load.envelope_bytes, limits.full_upload_bytes))
        if budget < limits.smallest_packet_bytes:
            raise PlanError(
                f"the uplink carries {written(uplink, Dimension.BYTES)} in "
                f"{written(limits.upload_time_s, Dimension.SECONDS)}; a message needs "
                f"{written(self.load.envelope_bytes, Dimension.BYTES)} and the smallest packet "
                f"{written(limits.smallest_packet_bytes, Dimension.BYTES)} more",
                "uplink",
            )
        if budget < limits.full_upload_bytes:
            self._thin_out(self._affordable_parameters(budget), budget)
        return budget

    def _affordable_parameters(self, budget: int) -> float:
        """How many parameters the budget is worth training."""
        if self.limits.dense_bits is not None:
            return max(0, budget - self.limits.smallest_packet_bytes) * 8 / self.limits.dense_bits
        return self.layout.parameter_count * budget / self.limits.full_upload_bytes

    def _size(self, name: str) -> float:
        """Parameters of a layer; in a dense packet its float buffers take room as well."""
        layer = self.layout[name]
        if self.limits.dense_bits is None:
            return layer.parameter_count
        buffer_bytes = sum(float_bytes(spec) for spec in layer.tensors if spec.kind == "buffer")
        return layer.parameter_count + buffer_bytes * 8 / self.limits.dense_bits

    def _thin_out(self, affordable: float, budget: int) -> None:
        """Keep the most valued layers whose parameters fit.

        A sparse packet can be spread as thinly as one likes, so the first of them always stays.
        """
        order = sorted(
            self.trained,
            key=lambda name: (
                name not in self.advice.must_train,
                -self.advice.values.get(name, 0.0),
                -self.layout.names.index(name),
            ),
        )
        room = affordable
        kept = set()
        for name in order:
            size = self._size(name)
            always = name == order[0] and self.limits.dense_bits is None
            if size <= room or always:
                kept.add(name)
                room -= size
        if not kept:
            raise PlanError(
                f"a dense update of no layer fits {written(budget, Dimension.BYTES)}; "
                'use mode = "sparse"',
                "uplink",
            )
        for name in [name for name in self.trained if name not in kept]:
            self._give_up(
                name,
                "uplink",
                f"{written(budget, Dimension.BYTES)} of the full "
                f"{written(self.limits.full_upload_bytes, Dimension.BYTES)} serve about "
                f"{affordable:,.0f} parameters; this layer has "
                f"{self.layout[name].parameter_count:,}",
            )

    def _fit_compute(self, budget: int) -> tuple[int, PlanCost]:
        deadline = self.limits.deadline_s
        self._check_transfers(self._cost(budget, 1))
        epochs = self._affordable_epochs(budget)
        if epochs < self.limits.epochs:
            self.binding = self.binding or "compute"
        while (cost := self._cost(budget, epochs)).modelled_total_s > deadline:
            detail = (
                f"the round takes {written(cost.modelled_total_s, Dimension.SECONDS)} with it, "
                f"the deadline is {written(deadline, Dimension.SECONDS)}"
            )
            if len(self.trained) > 1:
                self._give_up(self.trained[0], "compute", detail)
            else:
                raise PlanError(f'"{self.trained[0]}" alone: {detail}', "compute")
        return epochs, cost

    def _affordable_epochs(self, budget: int) -> int:
        """The most epochs that end before the deadline; 1 even if that does not."""
        one = self._cost(budget, 1)
        left_s = self.limits.deadline_s - one.modelled_download_s - one.modelled_upload_s
        if one.modelled_compute_s * self.limits.epochs <= left_s / 2:
            return self.limits.epochs
        epochs = min(self.limits.epochs, max(1, int(left_s / one.modelled_compute_s)))
        # The quotient was rounded, and so is the cost that must hold.
        if epochs < self.limits.epochs and self._fits(budget, epochs + 1):
            return epochs + 1
        return epochs if epochs == 1 or self._fits(budget, epochs) else epochs - 1

    def _fits(self, budget: int, epochs: int) -> bool:
        return self._cost(budget, epochs).modelled_total_s <= self.limits.deadline_s

    def _check_transfers(self, cost: PlanCost) -> None:
        """Refuse what no freezing can help: transfers that alone outlast the round."""
        down_s, up_s = cost.modelled_download_s, cost.modelled_upload_s
        if down_s + up_s > self.limits.deadline_s:
            raise PlanError(
                f"the transfers alone take {written(down_s, Dimension.SECONDS)} down and "
                f"{written(up_s, Dimension.SECONDS)} up, the deadline is "
                f"{written(self.limits.deadline_s, Dimension.SECONDS)}",
                "downlink" if down_s > up_s else "uplink",
            )

    def _cost(self, budget: int, epochs: int) -> PlanCost:
        return plan_cost(
            self.layout,
            self._stages(),
            examples=self.load.examples,
            epochs=epochs,
            batch_size=self.limits.batch_size,
            optimizer_slots=self.limits.optimizer_slots,
            capacity=self.capacity,
            download_bytes=self.load.download_bytes,
            upload_bytes=budget + self.load.envelope_bytes,
        )

    def _stages(self) -> tuple[Stage, ...]:
        """The advised stages without the layers that were given up; empty ones are merged away."""
        advised = self.advice.stages or (StageAdvice(1.0, tuple(self.layout.names)),)
        stages: list[Stage] = []
        carried = 0.0
        for stage in advised:
            layers = tuple(name for name in self.trained if name in stage.layers)
            if not layers:
                carried += stage.share
            elif stages and stages[-1].layers == layers:
                stages[-1] = replace(stages[-1], share=stages[-1].share + stage.share + carried)
                carried = 0.0
            else:
                stages.append(Stage(stage.share + carried, layers))
                carried = 0.0
        if carried and stages:
            stages[-1] = replace(stages[-1], share=stages[-1].share + carried)
        return tuple(stages) or (Stage(1.0, tuple(self.trained)),)


def float_bytes(spec: TensorSpec) -> int:
    """Bytes of a tensor as 32-bit floats; 0 for an integer or constant one: it never travels."""
    return 4 * spec.size if spec.travels else 0


def as_advice(suggestion: Plan, values: Mapping[str, float] | None = None) -> Advice:
    """A suggested plan as advice, for the client's own fit: what it freezes stays frozen."""
    worth = values or {name: float(at) for at, name in enumerate(suggestion.trained, start=1)}
    return Advice(
        frozen=suggestion.frozen,
        values=worth,
        stages=tuple(StageAdvice(stage.share, stage.layers) for stage in suggestion.stages),
        binding=suggestion.binding,
    )
