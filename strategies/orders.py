"""From advice to orders: what each client of the cohort is told to do in a round."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from flwr.app import ArrayRecord, RecordDict

from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layout
from fedfreeze.messages import (
    MODEL_FORMAT,
    NO_ROUND,
    NO_TEXT,
    PACKETS_FORMAT,
    PROTOCOL,
    TrainOrder,
    packed,
)
from fedfreeze.plan import Plan
from strategies.bounds import Limits, Load, splits_of
from strategies.clients import Client
from strategies.freeze.policy import Advice
from strategies.layer_wishes import floors_of, importance_of
from strategies.packet_sizes import (
    SMALLEST_SPARSE_BYTES,
    buffer_bytes,
    dense_overhead_bytes,
    dense_packet_bytes,
    dense_update_bytes,
)
from strategies.published import Published
from strategies.tables import Clients, Compression, Local, RoundLimits

# What an order is taken to weigh when plans are made, on both sides. Its true weight moves with the
# lengths of names and paths, which must not change what a seed gives.
ORDER_BYTES = 8_192

_OPTIMIZER_SLOTS = {"sgd": 0, "adam": 2, "adamw": 2}


@dataclass(frozen=True)
class Asked:
    """One client that was sent orders, and what the server must remember until it replies.

    Attributes:
        load: what the plan was made with.
        download_bytes: of the message, as Flower was handed it.
    """

    client: Client
    node_id: int
    advice: Advice
    plan: Plan
    order: TrainOrder
    load: Load
    download_bytes: int


def limits(
    layout: Layout,
    clients: Clients,
    compression: Compression,
    local: Local,
    per_round: RoundLimits | None = None,
) -> Limits:
    """What the strategy asks of every client, in the planner's terms.

    Raises:
        ConfigError: the compression ratio leaves less than the smallest packet, float buffers
            included, or a floor or a weight is for what the model has not.
    """
    floors_of(layout, compression.floors)
    importance_of(layout, compression.boost)
    if compression.mode == "dense":
        full = dense_packet_bytes(layout, compression.bits)
        smallest = dense_overhead_bytes(layout)
    else:
        dense_bytes = dense_update_bytes(layout)
        full = int(dense_bytes / compression.compression_ratio)
        smallest = SMALLEST_SPARSE_BYTES
        if full < smallest:
            raise ConfigError(
                f"compression.compression-ratio: {compression.compression_ratio:g} leaves {full} "
                f"of the {dense_bytes} bytes of a dense update; a packet that carries a value has "
                f"{smallest} or more; lower the ratio"
            )
        if full < smallest + (buffers := buffer_bytes(layout)):
            raise ConfigError(
                f"compression.compression-ratio: {compression.compression_ratio:g} leaves {full} "
                f"of the {dense_bytes} bytes of a dense update; float buffers travel whole, so a "
                f"packet of all layers has {smallest + buffers} or more; lower the ratio"
            )
    momentum = 1 if local.optimizer == "sgd" and local.momentum > 0 else 0
    per_round = per_round or RoundLimits()
    return Limits(
        epochs=local.epochs,
        batch_size=local.batch_size,
        optimizer_slots=_OPTIMIZER_SLOTS[local.optimizer] + momentum,
        upload_time_s=compression.upload_time,
        full_upload_bytes=full,
        dense_bits=compression.bits if compression.mode == "dense" else None,
        deadline_s=clients.round_deadline,
        smallest_packet_bytes=smallest,
        splits=_splits(layout, local),
        flops_per_round=per_round.flops_per_round,
        upload_bytes_per_round=per_round.upload_bytes_per_round,
        energy_j_per_round=per_round.energy_j_per_round,
    )


def _splits(layout: Layout, local: Local) -> tuple[int, ...]:
    """Into how many parts a batch may be computed where memory is short.

    Float buffers are taken for the running statistics of BatchNorm, which would be those of parts
    and need two examples at least.
    """
    has_statistics = buffer_bytes(layout) > 0
    if local.micro_batches == "always":
        return splits_of(local.batch_size, least=2 if has_statistics else 1)
    if local.micro_batches == "without-batch-norm" and not has_statistics:
        return splits_of(local.batch_size, least=1)
    return (1,)


@dataclass(frozen=True)
class Shipment:
    """What of the published model travels to one client.

    Attributes:
        layers: sent along, dense.
        base_version: what the client adds them to, or NO_ROUND when they are the whole model.
        named: digests of the layers that the client has from its pretrained file instead.
        by_packets: whether the packets since ``base_version`` travel instead of layers.
    """

    layers: tuple[str, ...]
    base_version: int = NO_ROUND
    named: Mapping[str, str] = field(default_factory=dict)
    by_packets: bool = False


@dataclass(frozen=True)
class Desk:
    """Writes orders: everything of them that is the same for all clients of a run.

    Attributes:
        initial: digests of the layers that a pretrained model began with; empty without one.
    """

    run: str
    strategy: str
    fleet: str
    state_dir: str
    data_dir: str
    downlink: str
    initial: Mapping[str, str] = field(default_factory=dict)

    def shipment(self, client: Client, published: Published) -> Shipment:
        """What a client lacks."""
        everything = published.layout.names
        if self.downlink == "dense":
            return Shipment(everything)
        held = client.held_version
        if held is not None:
            layers = published.lacking(held)
            if published.has_smaller_packets(held):
                return Shipment((), held, by_packets=True)
            return Shipment(layers) if layers == everything else Shipment(layers, held)
        named = {
            name: digest
            for name, digest in self.initial.items()
            if client.initial.get(name) == digest and published.changed_at[name] == 0
        }
        layers = tuple(name for name in everything if name not in named)
        return Shipment(layers, 0, named) if named else Shipment(everything)

    def order(
        self, client: Client, plan: Plan, published: Published, number: int, shipment: Shipment
    ) -> TrainOrder:
        """The order for one client."""
        accepted = client.accepted or (NO_ROUND, NO_TEXT)
        is_whole = shipment.base_version == NO_ROUND
        return TrainOrder(
            protocol=PROTOCOL,
            run=self.run,
            round_number=number,
            device_id=client.device_id,
            fingerprint=published.layout.fingerprint,
            strategy=self.strategy,
            fleet=self.fleet,
            plan=_compact(plan.to_json()),
            model_version=published.version,
            base_version=shipment.base_version,
            accepted_round=accepted[0],
            accepted_digest=accepted[1],
            envelope_bytes=client.envelope_bytes,
            state_dir=self.state_dir,
            data_dir=self.data_dir,
            initial=_compact(dict(shipment.named)) if shipment.named else NO_TEXT,
            model_digest=NO_TEXT if is_whole else published.digest,
        )


class Parcels:
    """The model parts of one round; clients that lack the same share one array."""

    def __init__(self, published: Published) -> None:
        self.published = published
        self._records: dict[int | tuple[str, ...], ArrayRecord] = {}

    def content(self, order: TrainOrder, shipment: Shipment) -> RecordDict:
        """The content of the TRAIN message."""
        key = shipment.base_version if shipment.by_packets else shipment.layers
        if key not in self._records:
            form = PACKETS_FORMAT if shipment.by_packets else MODEL_FORMAT
            self._records[key] = packed(self._data(shipment), form)
        part = "packets" if shipment.by_packets else "model"
        return RecordDict({"order": order.to_record(), part: self._records[key]})

    def model_bytes(self, shipment: Shipment) -> int:
        """Bytes of the model's part of the message, without the order."""
        return len(self._data(shipment))

    def _data(self, shipment: Shipment) -> bytes:
        if shipment.by_packets:
            return self.published.packets(shipment.base_version)
        return self.published.blob(shipment.layers)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
