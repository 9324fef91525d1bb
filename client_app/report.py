"""What a board's reply says beside its packet."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from client_app.resources import Identity
from client_app.settling import Outcome, Sent
from client_app.store import BoardState
from client_app.training import Trained, movements
from compression import summary
from fedfreeze.capacity import Capacity
from fedfreeze.code_digest import code_digest
from fedfreeze.layout import Arrays, Layout
from fedfreeze.messages import (
    NO_LOSS,
    NO_ROUND,
    NO_TEXT,
    NO_VALUE,
    PROTOCOL,
    MeasuredCost,
    TrainOrder,
    TrainReport,
)
from strategies.aggregation.step import l2_norm
from strategies.local_step import GradientNorms


@dataclass(frozen=True)
class Reply:
    """What goes back; the packet only if the board trained."""

    report: TrainReport
    packet: bytes | None


@dataclass(frozen=True)
class Reporter:
    """Writes the report of one round; holds what every report of it says."""

    order: TrainOrder
    who: Identity
    capacity: Capacity
    examples: int

    def untrained(self, status: str, detail: str, held_version: int | None = None) -> TrainReport:
        """Of a board that did not train, for the reason in ``detail``."""
        return TrainReport(
            protocol=PROTOCOL,
            code_digest=code_digest(),
            device_id=self.who.device_id,
            round_number=self.order.round_number,
            status=status,
            detail=detail,
            held_version=NO_ROUND if held_version is None else held_version,
            capacity=compact(self.capacity.to_json()),
            examples=self.examples,
            plan=NO_TEXT,
            measures="{}",
            packet_digest=NO_TEXT,
            train_loss=0.0,
            train_s=0.0,
            residual_norm=0.0,
            residual_rounding_norm=0.0,
            unmet_floors="[]",
            widths="{}",
            residuals="{}",
        )

    def trained(
        self,
        *,
        outcome: Outcome,
        plan: str,
        measures: str,
        trained: Trained,
        sent: Sent,
        state: BoardState,
        residuals: str,
    ) -> TrainReport:
        """Of a board that trained; ``state`` is the one after the round."""
        return replace(
            self.untrained("trained", outcome, state.model_version),
            plan=plan,
            measures=measures,
            packet_digest=sent.pending.digest,
            train_loss=trained.loss,
            train_loss_rms=NO_LOSS if trained.loss_rms is None else trained.loss_rms,
            train_s=trained.train_s,
            residual_norm=l2_norm(state.residual[name] for name in sorted(state.residual)),
            residual_rounding_norm=sent.rounding_norm,
            unmet_floors=compact(list(sent.unmet_floors)),
            widths=widths_text(sent),
            residuals=residuals,
        )


def measured_cost(*, memory_bytes: int | None, download_s: float | None) -> MeasuredCost:
    """What is sent of what a real board measured; None is what it could not."""
    return MeasuredCost(
        memory_bytes=NO_VALUE if memory_bytes is None else float(memory_bytes),
        download_s=NO_VALUE if download_s is None else download_s,
    )


def measures_text(delta: Arrays, published: Arrays, norms: GradientNorms, layout: Layout) -> str:
    """The report's ``measures``."""
    gradients, moved = norms.means(), movements(delta, published, layout)
    return compact(
        {
            name: [_six_digits(gradients[name]), _six_digits(moved[name])]
            for name in layout.ordered(moved)
            if name in gradients
        }
    )


def residuals_text(state: BoardState, layout: Layout) -> str:
    """The report's ``residuals``, after the round that the history ends with."""
    now, since = state.history.trained_round or 0, state.history.since
    # A server that went back to an older checkpoint may be behind the board.
    ages = {layer: max(0, now - number) for layer, number in since.items()}
    return compact(
        {
            layer: [_six_digits(of.norm), _six_digits(of.largest), of.age_rounds]
            for layer, of in summary(state.residual, layout, ages).items()
        }
    )


def widths_text(sent: Sent) -> str:
    """The report's ``widths``, of mode literal: bits and the range that they follow from."""
    ranges = sent.history.ranges
    return compact({name: [bits, _six_digits(ranges[name])] for name, bits in sent.widths.items()})


def compact(value: object) -> str:
    """JSON without a byte too many."""
    return json.dumps(value, separators=(",", ":"))


def _six_digits(value: float) -> float:
    """The wire carries no digits that nobody reads."""
    return float(f"{value:.6g}")
