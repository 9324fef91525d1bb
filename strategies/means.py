"""What one board has for a round, and the terms on which a set of layers can train there.

A packet of the trained layers A has at least

    sparse:  smallest + buffers(A), and full * parameters(A) / parameters(model)   bytes
    dense:   smallest + buffers(A) + parameters(A) * bits / 8                      bytes

The second of the sparse ones is the rule that a board trains at most the share of the parameters
that its packet is of the full one, so that its bytes are not spread too thinly. One layer alone is
free of it: a sparse packet can be spread as thinly as one likes. Float buffers travel whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from device_profiles.cost import plan_cost, training_flops, training_memory_bytes
from fedfreeze.capacity import Capacity
from fedfreeze.layout import Layout
from fedfreeze.plan import PlanCost, ReasonCode
from strategies.bounds import Limits, Load
from strategies.freeze.policy import StageAdvice
from strategies.packet_sizes import float_buffer_bytes
from strategies.stages import merged


@dataclass(frozen=True)
class Terms:
    """How a set of layers trains.

    Attributes:
        splits: parts that each batch is computed in.
        total_s: modelled, of the whole round.
    """

    epochs: int
    packet_bytes: int
    splits: int
    total_s: float


class Means:
    """One board in one round.

    Args:
        stages: as advised; none for one stage of everything.
    """

    def __init__(
        self,
        layout: Layout,
        capacity: Capacity,
        limits: Limits,
        load: Load,
        stages: Sequence[StageAdvice] = (),
    ) -> None:
        self.layout = layout
        self.capacity = capacity
        self.limits = limits
        self.load = load
        self.stages = tuple(stages)
        self.download_s = load.download_bytes / capacity.downlink_bytes_per_s.value
        self.uplink_bytes = capacity.uplink_bytes_per_s.value * limits.upload_time_s
        most = min(self.uplink_bytes - load.envelope_bytes, limits.full_upload_bytes)
        self.packet_limit: ReasonCode = "uplink"
        if limits.upload_bytes_per_round is not None:
            allowed = limits.upload_bytes_per_round - load.envelope_bytes
            if allowed < most:
                most, self.packet_limit = allowed, "upload"
        self.most_packet_bytes = int(most)

    # ---- what a set of layers takes

    def memory_bytes(self, trained: Sequence[str], splits: int) -> float:
        """Peak of training, with each batch computed in so many parts."""
        part = -(-self.limits.batch_size // splits)
        return training_memory_bytes(self.layout, trained, part, self.limits.optimizer_slots)

    def epoch_flops(self, trained: Sequence[str]) -> float:
        """Operations of one pass over the examples."""
        return sum(
            stage.share * training_flops(self.layout, stage.layers, self.load.examples)
            for stage in merged(self.stages, trained)
        )

    def least_packet_bytes(self, trained: Sequence[str]) -> int:
        """See the module's docstring."""
        layers = [self.layout[name] for name in trained]
        parameters = sum(layer.parameter_count for layer in layers)
        buffers = sum(float_buffer_bytes(layer) for layer in layers)
        return self.packet_bytes(parameters, buffers, alone=len(layers) == 1)

    def packet_bytes(self, parameters: int, buffers: int, *, alone: bool) -> int:
        """The least packet for so many parameters and bytes of float buffers."""
        limits = self.limits
        least = limits.smallest_packet_bytes + buffers
        if limits.dense_bits is not None:
            return least - (-parameters * limits.dense_bits // 8)
        if alone:
            return least
        return max(least, -(-limits.full_upload_bytes * parameters // self.layout.parameter_count))

    def seconds(self, flops: float, packet_bytes: int) -> float:
        """Download, training and upload, as :func:`device_profiles.cost.plan_cost` adds them."""
        return (
            self.download_s + flops / self.capacity.flops_per_s.value + self.upload_s(packet_bytes)
        )

    def upload_s(self, packet_bytes: int) -> float:
        """Of a reply with such a packet."""
        sent = packet_bytes + self.load.envelope_bytes
        return sent / self.capacity.uplink_bytes_per_s.value

    def joules(self, flops: float, packet_bytes: int) -> float | None:
        """Of transfers and training; None where nobody knows the board's watts."""
        if self.load.board is None:
            return None
        power = self.load.board.power
        radio_s = self.download_s + self.upload_s(packet_bytes)
        compute_s = flops / self.capacity.flops_per_s.value
        return power.radio.value * radio_s + power.compute.value * compute_s

    # ---- what the board affords

    def holds(self, flops: float, packet_bytes: int) -> bool:
        """Whether time, operations and joules last for so much training and such a packet."""
        limits = self.limits
        if self.seconds(flops, packet_bytes) > limits.deadline_s:
            return False
        if limits.flops_per_round is not None and flops > limits.flops_per_round:
            return False
        if limits.energy_j_per_round is None:
            return True
        joules = self.joules(flops, packet_bytes)
        return joules is not None and joules <= limits.energy_j_per_round

    def terms(self, trained: Sequence[str]) -> Terms | None:
        """The most epochs, then the largest packet, then the fewest parts; None if nothing fits."""
        least, most = self.least_packet_bytes(trained), self.most_packet_bytes
        if least > most:
            return None
        flops = self.epoch_flops(trained)
        if not self.holds(flops, least):
            return None
        has = self.capacity.memory_bytes.value
        splits = next((n for n in self.limits.splits if self.memory_bytes(trained, n) <= has), None)
        if splits is None:
            return None
        epochs = largest(1, self.limits.epochs, lambda n: self.holds(n * flops, least))
        packet = largest(least, most, lambda size: self.holds(epochs * flops, size))
        return Terms(epochs, packet, splits, self.seconds(epochs * flops, packet))

    def cost(self, trained: Sequence[str], terms: Terms) -> PlanCost:
        """What the plan is predicted to take."""
        return plan_cost(
            self.layout,
            merged(self.stages, trained),
            examples=self.load.examples,
            epochs=terms.epochs,
            batch_size=-(-self.limits.batch_size // terms.splits),
            optimizer_slots=self.limits.optimizer_slots,
            capacity=self.capacity,
            download_bytes=self.load.download_bytes,
            upload_bytes=terms.packet_bytes + self.load.envelope_bytes,
        )


def largest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The largest of ``low`` ... ``high`` that holds, where all below one that holds do.

    ``low`` is taken to hold.

    >>> largest(1, 10, lambda n: n * n <= 30)
    5
    """
    if holds(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
