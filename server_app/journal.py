"""What a run writes down round by round: ``rounds.jsonl`` and ``decisions.jsonl``.

Both are cut back to the checkpoint when a run is resumed, so that a round stands in them once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from logging import WARNING
from pathlib import Path
from typing import Any

from flwr.common.logger import log

from fedfreeze import plain_json
from fedfreeze.layout import Layout
from server_app import attendance_records
from server_app.cost_table import cost_table
from strategies.orders import Asked
from strategies.replies import Answer
from strategies.round_result import RoundResult
from strategies.selection.log import evidence, selection_record


class Lines:
    """A JSON Lines file that survives a crash: each append is flushed to the device."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, *records: dict[str, Any]) -> None:
        """Add one line for each record."""
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(f"{plain_json.text(record)}\n" for record in records)
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> Iterator[dict[str, Any]]:
        """Every record up to the first line that is not one: torn, not text, or of no round."""
        if not self._path.exists():
            return
        for line in self._path.read_bytes().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                return
            if not isinstance(record, dict) or not isinstance(record.get("round"), int):
                return
            yield record

    def cut_after(self, number: int) -> None:
        """Drop every record of a later round, and say which rounds are missing."""
        kept = [record for record in self.read() if record["round"] <= number]
        if missing := sorted(set(range(1, number + 1)) - {record["round"] for record in kept}):
            log(WARNING, "%s lacks the records of round(s) %s", self._path, missing)
        temporary = self._path.with_suffix(".new")
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(f"{plain_json.text(record)}\n" for record in kept)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)


def decisions(result: RoundResult, layout: Layout) -> list[dict[str, Any]]:
    """The audit log of a round: one record a client, with the reason for every layer.

    Before them, where a rule chose the cohort by scores, one record of who was there and why who
    was asked.
    """
    records = [] if result.selection is None else [selection_record(result.selection)]
    records += [_decision(result, layout, i, asked) for i, asked in sorted(result.asked.items())]
    records += [
        {
            "round": result.number,
            "device_id": i,
            "status": "sat-out",
            "capacity": result.capacities[i].to_json(),
            "detail": why,
            **_coverage(result, i),
        }
        for i, why in sorted(result.sat_out.items())
        if i not in result.asked
    ]
    return records


def _decision(result: RoundResult, layout: Layout, device_id: str, asked: Asked) -> dict[str, Any]:
    answer = result.answers.get(device_id)
    plan = asked.plan if answer is None else answer.plan
    record: dict[str, Any] = {
        "round": result.number,
        "device_id": device_id,
        "profile": asked.client.profile,
        "status": result.status(device_id),
        "capacity": result.capacities[device_id].to_json(),
        "layers": {
            name: {
                "decision": "freeze" if name in plan.frozen else "train",
                "reason": plan.frozen[name].code if name in plan.frozen else None,
                "detail": plan.frozen[name].detail if name in plan.frozen else None,
                "suggested": "freeze" if name in asked.plan.frozen else "train",
                "inputs": dict(asked.advice.inputs.get(name, {})),
            }
            for name in layout.names
        },
        "binding": plan.binding,
        "epochs": plan.epochs,
        "batch_size": plan.batch_size,
        **({} if plan.micro_batches == 1 else {"micro_batches": plan.micro_batches}),
        "stages": [[stage.share, list(stage.layers)] for stage in plan.stages],
        "upload_budget_bytes": plan.upload_budget_bytes,
        "download_bytes": asked.download_bytes,
        "cost": cost_table(asked, result.capacities[device_id], answer),
    }
    for source in (result.failed, result.sat_out, result.lost):
        if device_id in source:
            record["detail"] = source[device_id]
    if device_id in result.reply_bytes:
        record["upload_bytes"] = result.reply_bytes[device_id]
    if answer is not None:
        record |= _measured(answer)
    record |= evidence(result, device_id)
    record |= _coverage(result, device_id)
    record |= attendance_records.of_client(result, device_id)
    if device_id in result.residual_ratios:
        record["residual_ratio"] = result.residual_ratios[device_id]
    if device_id in result.residual_warnings:
        record["residual_warning"] = result.residual_warnings[device_id]
    return record


def _coverage(result: RoundResult, device_id: str) -> dict[str, Any]:
    """What coverage saw of a client and asked it for; and what no board can train."""
    record: dict[str, Any] = {}
    if result.untrainable:
        record["untrainable_layers"] = result.untrainable
    if result.covered is not None:
        reach = result.covered.reach[device_id]
        record["coverage"] = {
            "asked": list(result.asked_to_cover(device_id)),
            "reaches": list(reach.layers),
            "roomy": reach.roomy,
            "planned": sorted(reach.planned),
            "settled": sorted(reach.settled),
        }
    return record


def _measured(answer: Answer) -> dict[str, Any]:
    measured: dict[str, Any] = {
        "examples": answer.report.examples,
        "board_capacity": answer.capacity.to_json(),
        "upload_packet_bytes": answer.packet_bytes,
        "modelled_download_s": answer.cost.modelled_download_s,
        "modelled_compute_s": answer.cost.modelled_compute_s,
        "modelled_upload_s": answer.cost.modelled_upload_s,
        "modelled_memory_bytes": answer.cost.modelled_memory_bytes,
        "train_s": answer.report.train_s,
        "train_loss": answer.report.train_loss,
        "residual_norm": answer.report.residual_norm,
        "residual_rounding_norm": answer.report.residual_rounding_norm,
        "residual_was": answer.report.detail,
        "measures": {
            name: {"gradient_norm": m.gradient_norm, "movement": m.movement}
            for name, m in answer.measures.items()
        },
    }
    if answer.energy is not None:
        measured["energy_j"] = answer.energy.energy_j
        measured["energy_source"] = answer.energy.source
        measured["energy_scope"] = answer.energy.scope
    if answer.update is not None:
        measured["weight"] = answer.update.weight
    if answer.widths:
        measured["widths"] = {name: asdict(of) for name, of in answer.widths.items()}
    if answer.unmet_floors:
        measured["unmet_floors"] = list(answer.unmet_floors)
    if answer.residuals:
        measured["residuals"] = {name: asdict(of) for name, of in answer.residuals.items()}
    return measured
