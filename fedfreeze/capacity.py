"""What a client can do now: the triple (C, M, B), each value with where it is known from."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from fedfreeze.errors import ProtocolError

Source = Literal["measured", "profile", "assumed"]


@dataclass(frozen=True)
class Known:
    """A value and its source. An unknown value is absent (``None``), never 0."""

    value: float
    source: Source

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value > 0):
            raise ProtocolError(f"a capacity must be finite and above 0, got {self.value!r}")
        if self.source not in get_args(Source):
            raise ProtocolError(
                f"a capacity's source is one of {', '.join(get_args(Source))}, got {self.source!r}"
            )


@dataclass(frozen=True)
class Capacity:
    """What one client can do now.

    Attributes:
        flops_per_s: sustained float32 training speed.
        memory_bytes: what training may allocate, above the loaded program.
        uplink_bytes_per_s: towards the server.
        downlink_bytes_per_s: from the server.
    """

    flops_per_s: Known
    memory_bytes: Known
    uplink_bytes_per_s: Known
    downlink_bytes_per_s: Known

    def to_json(self) -> dict[str, Any]:
        """The capacity as plain values, for messages and the audit log."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Capacity:
        """The inverse of :meth:`to_json`, refusing anything else.

        Raises:
            ProtocolError: a field is missing, unknown, or out of range.
        """
        fields = ("flops_per_s", "memory_bytes", "uplink_bytes_per_s", "downlink_bytes_per_s")
        if not isinstance(data, dict) or set(data) != set(fields):
            raise ProtocolError(f"a capacity has the fields {', '.join(fields)}, got {data!r:.200}")
        known = {}
        for name in fields:
            entry = data[name]
            if not isinstance(entry, dict) or set(entry) != {"value", "source"}:
                raise ProtocolError(
                    f"capacity.{name}: expected value and source, got {entry!r:.100}"
                )
            if isinstance(entry["value"], bool) or not isinstance(entry["value"], int | float):
                raise ProtocolError(
                    f"capacity.{name}: expected a number, got {entry['value']!r:.50}"
                )
            known[name] = Known(float(entry["value"]), entry["source"])
        return cls(**known)
