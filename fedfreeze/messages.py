"""The four messages of a round, as Flower records.

    server -> client   query.resources   ResourceQuery
    client -> server                     ResourceReport
    server -> client   train             TrainOrder    + the layers or packets that the client lacks
    client -> server                     TrainReport   + the packet; EnergyReport, MeasuredCost

Each is a frozen dataclass of plain values, carried by one ``ConfigRecord``; big bytes travel beside
it as one packed ``Array``. What arrives is checked field by field: a missing, unknown or wrongly
typed one is a :class:`~fedfreeze.errors.ProtocolError` that names it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import Any, Self

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedfreeze.errors import ProtocolError

PROTOCOL = 1
QUERY = "query.resources"

MODEL_FORMAT = "fedfreeze.safetensors.v1"
PACKET_FORMAT = "fedfreeze.packet.v1"
PACKETS_FORMAT = "fedfreeze.packets.v1"

# Flower's error code for a simulated client whose worker process died; Ray would then fail every
# later message of the run in no time.
WORKER_DIED = 0

# Device ids of simulated clients begin so.
SIMULATED = "sim-"

# Flower's records cannot carry an absent value; these stand for it on the wire only.
NO_ROUND = -1
NO_LOSS = -1.0
NO_TEXT = "-"
NO_VALUE = -1.0

_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "str": (str,)}


@dataclass(frozen=True)
class _Message:
    """Shared by the four: to and from a record, strictly."""

    def to_record(self) -> ConfigRecord:
        """The message's scalar fields."""
        return ConfigRecord({f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """The inverse of :meth:`to_record`.

        Raises:
            ProtocolError: the record is not exactly this message.
        """
        what = cls.__name__
        if not isinstance(record, ConfigRecord):
            raise ProtocolError(f"{what}: expected a ConfigRecord, got {type(record).__name__}")
        expected = {f.name: str(f.type) for f in fields(cls)}
        if missing := sorted(set(expected) - set(record)):
            raise ProtocolError(f"{what}: expected the field {missing[0]!r}, which is missing")
        if unknown := sorted(set(record) - set(expected)):
            raise ProtocolError(f"{what}: got the field {unknown[0]!r:.50}, which is unknown")
        for name, kind in expected.items():
            value = record[name]
            if isinstance(value, bool) or not isinstance(value, _TYPES[kind]):
                raise ProtocolError(f"{what}.{name}: expected {kind}, got {value!r:.50}")
            if isinstance(value, float) and not math.isfinite(value):
                raise ProtocolError(f"{what}.{name}: expected a finite number, got {value!r}")
        return cls(**{name: record[name] for name in expected})


@dataclass(frozen=True)
class ResourceQuery(_Message):
    """Asks a node who it is and what it can do now.

    Attributes:
        strategy: the resolved strategy as JSON; names the task whose examples are counted.
        fleet: TOML of the simulated fleet; ignored by real boards.
        data_dir: where simulated clients find their data, or NO_TEXT; real boards ignore it.
    """

    protocol: int
    round_number: int
    strategy: str
    fleet: str
    data_dir: str


@dataclass(frozen=True)
class ResourceReport(_Message):
    """A node's answer.

    Attributes:
        capacity: :meth:`fedfreeze.capacity.Capacity.to_json` as text.
        initial: JSON object: the digest of each layer with which a pretrained model begins here;
            NO_TEXT if the strategy wants none, or the node does not have the file.
        condition: :meth:`fedfreeze.condition.Condition.to_json` as text; `{}` of a simulated node.
    """

    protocol: int
    code_digest: str
    device_id: str
    profile: str
    capacity: str
    examples: int
    initial: str
    condition: str = "{}"


@dataclass(frozen=True)
class TrainOrder(_Message):
    """One client's orders for one round.

    Attributes:
        run: name of the run; a board keeps its state apart by it.
        fingerprint: of the layout; a client with another one refuses.
        plan: the suggested :class:`fedfreeze.plan.Plan` as JSON.
        base_version: of the published model that the client is believed to hold, or NO_ROUND when
            the layers sent along are all of them. Packets lead on from this version.
        accepted_round, accepted_digest: the last packet of this client that was merged, or
            NO_ROUND and NO_TEXT: what its residual is settled by.
        state_dir: where simulated clients keep their state; real boards ignore it.
        data_dir: see :class:`ResourceQuery`.
        initial: JSON object: layers that were not sent, since the client has them from the same
            pretrained file, with the digest of each; NO_TEXT if there are none.
        model_digest: :func:`fedfreeze.layer_digest.model_digest` of ``model_version``, by which a
            client knows that it has put the same model together; NO_TEXT if all of it is sent.
    """

    protocol: int
    run: str
    round_number: int
    device_id: str
    fingerprint: str
    strategy: str
    fleet: str
    plan: str
    model_version: int
    base_version: int
    accepted_round: int
    accepted_digest: str
    envelope_bytes: int
    state_dir: str
    data_dir: str
    initial: str
    model_digest: str = NO_TEXT


@dataclass(frozen=True)
class TrainReport(_Message):
    """What a client did.

    Attributes:
        status: ``trained``, ``sat-out`` (no plan fits; ``detail`` says which limit is short) or
            ``needs-model`` (it lost the published model and must be sent all of it).
        plan: the final plan as JSON, or NO_TEXT when it is the suggestion.
        measures: JSON object: per trained layer ``[gradient_norm, movement]``.
        train_loss: mean over the examples of the last epoch; 0 unless ``trained``.
        train_s: measured wall-clock seconds of local training; 0 unless ``trained``.
        residual_norm: l2 norm of what is left to send; 0 unless ``trained``.
        residual_rounding_norm: l2 norm of what keeping the residual in float16 lost in this round,
            or a little more; 0 in float32.
        unmet_floors: JSON list: key layers of which the budget could not hold the least.
        widths: JSON object: in compression mode literal, per layer of which values are sent ``[bits
            of a value, how large its values have lately been]``; else ``{}``.
        residuals: JSON object: per layer of which something is left to send ``[norm, largest
            absolute value, age in rounds or null]``; ``{}`` unless the strategy asks for it.
        train_loss_rms: root mean square of the losses of single examples, over those of
            ``train_loss``; NO_LOSS unless ``trained`` and the strategy's selection reads it.
    """

    protocol: int
    code_digest: str
    device_id: str
    round_number: int
    status: str
    detail: str
    held_version: int
    capacity: str
    examples: int
    plan: str
    measures: str
    packet_digest: str
    train_loss: float
    train_s: float
    residual_norm: float
    residual_rounding_norm: float
    unmet_floors: str
    widths: str
    residuals: str
    train_loss_rms: float = NO_LOSS


@dataclass(frozen=True)
class EnergyReport(_Message):
    """What a board drew while it carried out an order; only real boards with a sensor send it.

    Attributes:
        energy_j: measured joules.
        source, scope: as :class:`device_profiles.energy.reading.EnergyReading` has them.
        samples: how many times the sensor was read.
        gaps_s: seconds without samples.
    """

    energy_j: float
    source: str
    scope: str
    samples: int
    gaps_s: float


@dataclass(frozen=True)
class MeasuredCost(_Message):
    """What a real board measured of a round in which it trained, beside seconds and joules.

    Attributes:
        memory_bytes: peak of its process above what was there before the round, with the layers or
            packets that came; NO_VALUE where nothing tells it.
        download_s: that the bytes of the order took, or NO_VALUE.
    """

    memory_bytes: float
    download_s: float


def printable(text: str, most: int = 500) -> str:
    r"""What a node wrote, fit for a log or a terminal: no control characters, not without end.

    >>> printable("\x1b[2Jwell\nround 3/3", most=12)
    '?[2Jwell?rou...'
    """
    shown = "".join(c if c.isprintable() else "?" for c in text[:most])
    return shown + ("..." if len(text) > most else "")


def packed(data: bytes, format_name: str) -> ArrayRecord:
    """Bytes as one Flower array: every further array would cost two round trips more."""
    return ArrayRecord({"packed": Array("uint8", (len(data),), format_name, data)})


def unpacked(content: RecordDict, key: str, format_name: str) -> bytes:
    """The bytes under ``key``.

    Raises:
        ProtocolError: they are missing or of another format.
    """
    record = content.get(key)
    if not isinstance(record, ArrayRecord) or list(record) != ["packed"]:
        raise ProtocolError(f"expected one packed array under {key!r}, got {record!r:.100}")
    array = record["packed"]
    if array.stype != format_name:
        raise ProtocolError(f"{key!r}: expected the format {format_name}, got {array.stype!r:.50}")
    return array.data


def from_json(what: str, text: str) -> Any:
    """The value of a JSON text that arrived under the name ``what``.

    Whole numbers beyond 64 bits come back as floats: no field needs them, and arithmetic with them
    would end in an OverflowError somewhere else.

    Raises:
        ProtocolError: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text, parse_int=lambda n: int(n) if len(n) < 20 else float(n))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ProtocolError(f"{what}: expected JSON, got {text!r:.80}") from error


def check_protocol(protocol: int) -> None:
    """Refuse another protocol version.

    Raises:
        ProtocolError: always names both versions.
    """
    if protocol != PROTOCOL:
        raise ProtocolError(
            f"expected protocol {PROTOCOL}, got {protocol}; install the same release of FedFreeze "
            "on the server and on every board"
        )
