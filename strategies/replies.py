"""From replies to updates: everything about a reply that can be wrong is found here."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, get_args

from flwr.app import RecordDict

from compression import EMPTY_PACKET_BYTES, LayerResidual, decode, packet_digest
from compression.literal import WIDTHS
from device_profiles.cost import plan_cost
from device_profiles.energy.reading import EnergySource, Scope
from fedfreeze.capacity import Capacity
from fedfreeze.errors import ProtocolError
from fedfreeze.layout import Arrays, Layout
from fedfreeze.messages import (
    NO_LOSS,
    NO_ROUND,
    NO_TEXT,
    NO_VALUE,
    PACKET_FORMAT,
    EnergyReport,
    MeasuredCost,
    TrainReport,
    check_protocol,
    from_json,
    printable,
    unpacked,
)
from fedfreeze.plan import Plan, PlanCost
from fedfreeze.wire_size import planned_bytes
from strategies.aggregation.mean import Update
from strategies.enrolment import check_digest
from strategies.few_examples import FewExamples
from strategies.local_step import LayerMeasures
from strategies.mask_rule import MaskRule
from strategies.movement import too_far
from strategies.orders import Asked

# What a reply may weigh beside its packet.
MOST_ENVELOPE_BYTES = 1_000_000

# No board has so many bytes of memory, or waits for so many seconds.
MOST_MEASURED = 1e15

STATUSES = ("trained", "sat-out", "needs-model")


@dataclass(frozen=True)
class LayerWidth:
    """How a layer's values are sent in compression mode literal.

    Attributes:
        value_bits: of each value, its sign among them.
        lately: how large its values have lately been, from which the bits are chosen.
    """

    value_bits: int
    lately: float


@dataclass(frozen=True)
class Answer:
    """A reply that was understood.

    Attributes:
        update: present if the client trained.
        cost: modelled for the final plan and the packet that came.
        upload_bytes: the whole reply as handed to Flower; ``packet_bytes`` of it are the packet.
        envelope_bytes: what the next plan takes the rest of a reply to weigh.
        energy: what a real board drew in its round; None where it has no sensor.
        measured: what else a real board measured of its round; None where it says nothing.
    """

    report: TrainReport
    capacity: Capacity
    plan: Plan
    cost: PlanCost
    measures: dict[str, LayerMeasures]
    residuals: dict[str, LayerResidual]
    unmet_floors: tuple[str, ...]
    widths: dict[str, LayerWidth]
    update: Update | None
    packet_bytes: int
    upload_bytes: int
    envelope_bytes: int
    energy: EnergyReport | None = None
    measured: MeasuredCost | None = None

    @property
    def held_version(self) -> int | None:
        """Of the published model that the client stores."""
        return None if self.report.held_version == NO_ROUND else self.report.held_version

    @property
    def train_loss_rms(self) -> float | None:
        """Root mean square of the losses of single examples, where the strategy reads it."""
        return None if self.report.train_loss_rms == NO_LOSS else self.report.train_loss_rms


def understand(
    content: RecordDict,
    asked: Asked,
    layout: Layout,
    *,
    upload_bytes: int,
    code_digest: str,
    optimizer_slots: int,
    few_examples: FewExamples,
    mask_rule: MaskRule | None = None,
) -> Answer:
    """Check a reply against what was asked and decode its packet.

    ``upload_bytes`` is the weight of the whole reply, as Flower was handed it.
    ``mask_rule`` says which values are sent, where packets do not say so themselves.

    Raises:
        ProtocolError: another release, round or client; a plan beyond the suggestion; nonsense.
        PacketError: the packet is not one of this layout, round and budget.
    """
    report = TrainReport.from_record(content.get("report"))
    report = replace(report, detail=printable(report.detail))
    check_protocol(report.protocol)
    check_digest(report.code_digest, code_digest)
    _same("round", asked.order.round_number, report.round_number)
    _same("device", asked.order.device_id, report.device_id)
    if report.status not in STATUSES:
        raise ProtocolError(f"status: expected one of {', '.join(STATUSES)}, got {report.status!r}")
    if report.examples < 1:
        raise ProtocolError(f"expected 1 example or more, got {report.examples}")
    for name in ("train_s", "residual_norm", "residual_rounding_norm"):
        if (value := getattr(report, name)) < 0:
            raise ProtocolError(f"{name}: expected 0 or more, got {value}")
    if report.train_loss_rms < 0 and report.train_loss_rms != NO_LOSS:
        raise ProtocolError(f"train_loss_rms: expected 0 or more, got {report.train_loss_rms}")
    capacity = Capacity.from_json(from_json("capacity", report.capacity))
    plan = _final_plan(report, asked.plan, layout)
    trained = report.status == "trained"
    packet = unpacked(content, "packet", PACKET_FORMAT) if trained else b""
    cost = plan_cost(
        layout,
        plan.stages,
        examples=report.examples,
        epochs=plan.epochs,
        batch_size=plan.micro_batch_size,
        optimizer_slots=optimizer_slots,
        capacity=capacity,
        download_bytes=asked.load.download_bytes,
        upload_bytes=planned_bytes(content),
    )
    if not math.isfinite(cost.modelled_total_s):
        raise ProtocolError(f"with this capacity a round takes {cost.modelled_total_s} s")
    envelope_bytes = planned_bytes(content) - len(packet)
    if envelope_bytes > MOST_ENVELOPE_BYTES:
        raise ProtocolError(
            f"expected at most {MOST_ENVELOPE_BYTES} bytes beside the packet, got {envelope_bytes}"
        )
    return Answer(
        report=report,
        capacity=capacity,
        plan=plan,
        cost=cost,
        measures=_measures(report.measures, plan) if trained else {},
        residuals=_residuals(report, layout) if trained else {},
        unmet_floors=_layer_names(report.unmet_floors, layout) if trained else (),
        widths=_widths(report.widths, plan) if trained else {},
        update=_update(packet, report, plan, layout, few_examples=few_examples, mask_rule=mask_rule)
        if trained
        else None,
        packet_bytes=len(packet),
        upload_bytes=upload_bytes,
        envelope_bytes=envelope_bytes,
        energy=_energy(content),
        measured=_measured(content),
    )


def _energy(content: RecordDict) -> EnergyReport | None:
    if "energy" not in content:
        return None
    energy = EnergyReport.from_record(content["energy"])
    for name in ("energy_j", "samples", "gaps_s"):
        if (value := getattr(energy, name)) < 0:
            raise ProtocolError(f"{name}: expected 0 or more, got {value}")
    # A model is the server's own: what a board sends is measured.
    sources = [source for source in get_args(EnergySource) if source != "model"]
    for name, known in (("source", sources), ("scope", get_args(Scope))):
        if (text := getattr(energy, name)) not in known:
            raise ProtocolError(
                f"energy {name}: expected one of {', '.join(known)}, got {text!r:.50}"
            )
    return energy


def _measured(content: RecordDict) -> MeasuredCost | None:
    if "measured" not in content:
        return None
    measured = MeasuredCost.from_record(content["measured"])
    for name in ("memory_bytes", "download_s"):
        value = getattr(measured, name)
        if value != NO_VALUE and not 0 <= value < MOST_MEASURED:
            raise ProtocolError(
                f"{name}: expected 0 or more and below {MOST_MEASURED:g}, or {NO_VALUE:g} for "
                f"what is not known, got {value}"
            )
    return measured


def check_movement(update: Update, before: Arrays, layout: Layout) -> None:
    """Refuse an update that no local training gives; merging it would ruin the model for all.

    Raises:
        ProtocolError: a layer would move too far (:mod:`strategies.movement`).
    """
    for wrong in too_far(update.deltas, update.layers, before, layout):
        raise ProtocolError(str(wrong))


def _update(
    packet: bytes,
    report: TrainReport,
    plan: Plan,
    layout: Layout,
    *,
    few_examples: FewExamples,
    mask_rule: MaskRule | None,
) -> Update:
    budget_bytes, trained = plan.upload_budget_bytes, layout.ordered(plan.trained)
    positions = None
    if mask_rule is not None:
        mask = mask_rule.mask(layout, trained, budget_bytes, report.round_number)
        positions = mask.positions(layout, trained)
    decoded = decode(
        packet,
        layout,
        max_bytes=max(budget_bytes, EMPTY_PACKET_BYTES),
        positions=positions,
    )
    _same("round of the packet", report.round_number, decoded.round_number)
    _same("packet digest", packet_digest(packet), report.packet_digest)
    if decoded.layers and set(decoded.layers) != set(plan.trained):
        raise ProtocolError(
            f"the packet covers {', '.join(decoded.layers)}; "
            f"the plan trains {', '.join(plan.trained)}"
        )
    weight = few_examples.weight(report.examples)
    return Update(report.device_id, weight, decoded.layers, decoded.update)


def _final_plan(report: TrainReport, suggestion: Plan, layout: Layout) -> Plan:
    if report.plan == NO_TEXT:
        return suggestion
    plan = Plan.from_json(from_json("plan", report.plan))
    plan.check(layout)
    if beyond := sorted(set(plan.trained) - set(suggestion.trained)):
        raise ProtocolError(f"the client trained {beyond[0]!r}, which the suggestion freezes")
    for what in ("upload_budget_bytes", "epochs", "batch_size"):
        asked, own = getattr(suggestion, what), getattr(plan, what)
        if own > asked:
            raise ProtocolError(f"{what}: the suggestion is {asked}, the client took {own}")
    return plan


def _measures(text: str, plan: Plan) -> dict[str, LayerMeasures]:
    table = from_json("measures", text)
    if not isinstance(table, dict) or not set(table) <= set(plan.trained):
        raise ProtocolError(f"measures: expected entries of trained layers, got {text!r:.80}")
    measures = {}
    for name, pair in table.items():
        good = isinstance(pair, list) and len(pair) == 2 and all(_is_measure(v) for v in pair)
        if not good:
            raise ProtocolError(f"measures of {name!r}: expected 2 numbers >= 0, got {pair!r:.80}")
        measures[name] = LayerMeasures(float(pair[0]), float(pair[1]))
    return measures


def _layer_names(text: str, layout: Layout) -> tuple[str, ...]:
    names = from_json("unmet_floors", text)
    if not isinstance(names, list) or not all(name in layout.names for name in names):
        raise ProtocolError(f"unmet_floors: expected layers of the model, got {text!r:.80}")
    return tuple(names)


def _widths(text: str, plan: Plan) -> dict[str, LayerWidth]:
    table = from_json("widths", text)
    if not isinstance(table, dict) or not set(table) <= set(plan.trained):
        raise ProtocolError(f"widths: expected entries of trained layers, got {text!r:.80}")
    for name, pair in table.items():
        good = isinstance(pair, list) and len(pair) == 2 and all(map(_is_measure, pair))
        if not good or pair[0] not in WIDTHS:
            raise ProtocolError(
                f"widths of {name!r}: expected 2, 4, 8 or 16 bits and a number >= 0, got "
                f"{pair!r:.80}"
            )
    return {name: LayerWidth(int(bits), float(lately)) for name, (bits, lately) in table.items()}


def _residuals(report: TrainReport, layout: Layout) -> dict[str, LayerResidual]:
    table = from_json("residuals", report.residuals)
    if not isinstance(table, dict) or not set(table) <= set(layout.names):
        raise ProtocolError(
            f"residuals: expected entries of the model's layers, got {report.residuals!r:.80}"
        )
    residuals = {}
    for name, entry in table.items():
        good = isinstance(entry, list) and len(entry) == 3 and all(map(_is_measure, entry[:2]))
        if not good or not _is_age(entry[2], report.round_number):
            raise ProtocolError(
                f"residuals of {name!r}: expected 2 numbers >= 0 and an age from 0 to "
                f"{report.round_number} rounds or null, got {entry!r:.80}"
            )
        residuals[name] = LayerResidual(float(entry[0]), float(entry[1]), entry[2])
    return residuals


def _is_age(value: Any, most: int) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value is None or (whole and 0 <= value <= most)


def _is_measure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e30


def _same(what: str, expected: object, came: object) -> None:
    if came != expected:
        raise ProtocolError(f"{what}: expected {expected}, got {came!r:.60}")
