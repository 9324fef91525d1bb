"""The most that a reply can weigh beside its packet, before anybody has written it.

Packet and envelope share what the uplink carries in ``upload-time``, so a plan leaves room for the
envelope. What the last reply weighed is no bound: numbers have more or fewer digits, and a plan of
the board's own travels with the reply. So a board asks here before it plans, and the server before
it takes the weight of a reply for that of the next.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import get_args

from flwr.app import RecordDict

from compression import packet_digest
from device_profiles.energy.reading import EnergySource, Scope
from fedfreeze.capacity import Capacity, Known
from fedfreeze.code_digest import code_digest
from fedfreeze.layout import Layout
from fedfreeze.messages import (
    NO_TEXT,
    PACKET_FORMAT,
    PROTOCOL,
    SIMULATED,
    EnergyReport,
    MeasuredCost,
    TrainReport,
    packed,
)
from fedfreeze.wire_size import planned_bytes, size_bytes
from strategies.layer_wishes import floors_of
from strategies.schema import Strategy

# No finite number is longer in JSON: 18 characters with six digits, 23 with all of them.
_SIX_DIGITS = 1.23457e15
_ALL_DIGITS = 2.2250738585072014e-308
_LARGEST_INT = 2**63 - 1
_KNOWN = Known(_ALL_DIGITS, "measured")
_ENERGY = EnergyReport(
    energy_j=0.0,
    source=max(get_args(EnergySource), key=len),
    scope=max(get_args(Scope), key=len),
    samples=_LARGEST_INT,
    gaps_s=0.0,
)
_MEASURED = MeasuredCost(memory_bytes=0.0, download_s=0.0)
_MOST_BITS = 16  # of a value in mode literal
_OUTCOME = "accepted"  # none is longer: nothing, accepted, returned, repeated


class EnvelopeBound:
    """Of the replies of one board under one strategy.

    Args:
        strategy: of the run.
        layout: of the model.
        device_id: of the board.
    """

    def __init__(self, strategy: Strategy, layout: Layout, device_id: str) -> None:
        self._layout = layout
        self._device_id = device_id
        self._floors = [*floors_of(layout, strategy.compression.floors)]
        self._summary = strategy.residual.summary
        self._literal = strategy.compression.mode == "literal"

    def most_bytes(self, layers: Sequence[str], packet_bytes: int, *, plan: str = NO_TEXT) -> int:
        """Largest envelope, in bytes as :func:`fedfreeze.wire_size.planned_bytes` counts them.

        Args:
            layers: that the board trains.
            packet_bytes: of the largest packet; its length is written down, too.
            plan: the report's text of it.
        """
        content = RecordDict(
            {
                "report": self._report(layers, plan).to_record(),
                "packet": packed(b"\0", PACKET_FORMAT),
            }
        )
        if not self._device_id.startswith(SIMULATED):
            content["energy"] = _ENERGY.to_record()
            content["measured"] = _MEASURED.to_record()
        return planned_bytes(content) - 1 + size_bytes(packet_bytes)

    def _report(self, layers: Sequence[str], plan: str) -> TrainReport:
        summary = self._layout.names if self._summary else ()
        widths = layers if self._literal else ()
        return TrainReport(
            protocol=PROTOCOL,
            code_digest=code_digest(),
            device_id=self._device_id,
            round_number=_LARGEST_INT,
            status="trained",
            detail=_OUTCOME,
            held_version=_LARGEST_INT,
            capacity=_compact(Capacity(_KNOWN, _KNOWN, _KNOWN, _KNOWN).to_json()),
            examples=_LARGEST_INT,
            plan=plan,
            measures=_compact(dict.fromkeys(layers, [_SIX_DIGITS] * 2)),
            packet_digest=packet_digest(b""),
            train_loss=0.0,
            train_s=0.0,
            residual_norm=0.0,
            residual_rounding_norm=0.0,
            unmet_floors=_compact(self._floors),
            widths=_compact({name: [_MOST_BITS, _SIX_DIGITS] for name in widths}),
            residuals=_compact(dict.fromkeys(summary, [_SIX_DIGITS] * 2 + [_LARGEST_INT])),
        )


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
