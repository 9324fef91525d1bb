"""From advice to orders: what each client of the cohort is told to do in a round."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from flwr.app import ArrayRecord, RecordDict

from compression import EMPTY_PACKET_BYTES
from fedfreeze.errors import ConfigError
from fedfreeze.layout import Layout
from fedfreeze.messages import MODEL_FORMAT, NO_ROUND, NO_TEXT, PROTOCOL, TrainOrder, packed
from fedfreeze.plan import Plan
from strategies.clients import Client
from strategies.freeze.policy import Advice
from strategies.planner import Limits, Load, float_bytes
from strategies.published import Published
from strategies.tables import Clients, Compression, Local

# A sparse packet of fewer bytes than this above its header cannot carry a value.
LEAST_PAYLOAD_BYTES = 16

# What an order is taken to weigh when plans are made, on both sides. Its true weight moves with the
# lengths of names and paths, which must not change what a seed gives.
ORDER_BYTES = 8_192

# Header, segment table and scales of a dense packet, at most.
DENSE_OVERHEAD_BYTES = 1_024

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


def limits(layout: Layout, clients: Clients, compression: Compression, local: Local) -> Limits:
    """What the strategy asks of every client, in the planner's terms.

    Raises:
        ConfigError: the compression ratio leaves less than the smallest packet.
    """
    floats = [tensor for tensor in layout.tensors.values() if tensor.travels]
    dense_bytes = sum(float_bytes(tensor) for tensor in floats)
    if compression.mode == "dense":
        # Buffers travel as 32-bit floats whatever the bits.
        buffer_bytes = sum(float_bytes(tensor) for tensor in floats if tensor.kind == "buffer")
        overhead = DENSE_OVERHEAD_BYTES + 16 * len(floats)
        parameter_bytes = (dense_bytes - buffer_bytes) * compression.bits // 32
        full, smallest = overhead + parameter_bytes + buffer_bytes, overhead
    else:
        full = int(dense_bytes / compression.compression_ratio)
        smallest = EMPTY_PACKET_BYTES + LEAST_PAYLOAD_BYTES
        if full < smallest:
            raise ConfigError(
                f"compression.compression-ratio: {compression.compression_ratio:g} leaves {full} "
                f"of the {dense_bytes} bytes of a dense update; a packet that carries a value has "
                f"{smallest} or more; lower the ratio"
            )
    momentum = 1 if local.optimizer == "sgd" and local.momentum > 0 else 0
    return Limits(
        epochs=local.epochs,
        batch_size=local.batch_size,
        optimizer_slots=_OPTIMIZER_SLOTS[local.optimizer] + momentum,
        upload_time_s=compression.upload_time,
        full_upload_bytes=full,
        dense_bits=compression.bits if compression.mode == "dense" else None,
        deadline_s=clients.round_deadline,
        smallest_packet_bytes=smallest,
    )


@dataclass(frozen=True)
class Shipment:
    """What of the published model travels to one client.

    Attributes:
        layers: sent along.
        base_version: what the client adds them to, or NO_ROUND when they are the whole model.
        named: digests of the layers that the client has from its pretrained file instead.
    """

    layers: tuple[str, ...]
    base_version: int = NO_ROUND
    named: Mapping[str, str] = field(default_factory=dict)


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
        )


class Parcels:
    """The model parts of one round; clients that lack the same layers share one array."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._records: dict[tuple[str, ...], ArrayRecord] = {}

    def content(self, order: TrainOrder, layers: tuple[str, ...]) -> RecordDict:
        """The content of the TRAIN message."""
        if layers not in self._records:
            self._records[layers] = packed(self._published.blob(layers), MODEL_FORMAT)
        return RecordDict({"order": order.to_record(), "model": self._records[layers]})

    def model_bytes(self, layers: tuple[str, ...]) -> int:
        """Bytes of these layers, without the order."""
        return len(self._published.blob(layers))


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
