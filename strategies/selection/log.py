"""What ``decisions.jsonl`` holds of the choice of a cohort, and how it is read back.

A rule that scores has one record a round, before those of the clients::

    {"round": 7, "selection": {"rule": "oort", "exploration": 0.8, "preferred_s": 41.5, "clients": {
        "cam-1": {"why": "exploit", "score": 0.9, "modelled_s": 30.0, "work": 5e7},
        "cam-2": {"score": 0.4, "modelled_s": 70.0, "work": 2e7},
        "cam-3": {"why": "explore"}}}}

Everybody who was there is a client of it; those without a ``why`` were not asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strategies.selection.rule import Chosen, Offer, Prediction, Record

if TYPE_CHECKING:  # it brings Flower, which forecasts do without
    from strategies.round_result import RoundResult


def selection_record(chosen: Chosen) -> dict[str, Any]:
    """Who was there, who was asked, and why."""
    clients = {}
    for device_id in sorted(chosen.offer.candidates):
        entry: dict[str, Any] = {}
        if device_id in chosen.why:
            entry["why"] = chosen.why[device_id]
        if device_id in chosen.scores:
            entry["score"] = chosen.scores[device_id]
        if device_id in chosen.offer.predictions:
            prediction = chosen.offer.predictions[device_id]
            entry |= {"modelled_s": prediction.modelled_s, "work": prediction.work}
        clients[device_id] = entry
    return {
        "round": chosen.offer.number,
        "selection": {"rule": chosen.rule, **chosen.figures, "clients": clients},
    }


def offer_of(record: Record) -> Offer:
    """What a rule was offered, of :func:`selection_record`."""
    clients = record["selection"]["clients"]
    return Offer(
        record["round"],
        tuple(sorted(clients)),
        {
            device_id: Prediction(entry["modelled_s"], entry["work"])
            for device_id, entry in clients.items()
            if "modelled_s" in entry
        },
    )


def evidence(result: RoundResult, device_id: str) -> dict[str, Any]:
    """What rules read of a client's round; its record in the audit log holds the same."""
    record: dict[str, Any] = {"device_id": device_id, "status": result.status(device_id)}
    answer = result.answers.get(device_id)
    if answer is not None:
        record["examples"] = answer.report.examples
        if answer.train_loss_rms is not None:
            record["train_loss_rms"] = answer.train_loss_rms
    if device_id in result.gains:
        record["collaborative_gain"] = result.gains[device_id]
    return record


def records_of(result: RoundResult) -> list[dict[str, Any]]:
    """What a rule learns of a round: those parts of the audit log that it reads."""
    if result.selection is None:
        return []
    asked = sorted({*result.asked, *result.sat_out})
    clients = [{"round": result.number, **evidence(result, device_id)} for device_id in asked]
    return [selection_record(result.selection), *clients]
