"""What the records of a run say of simulated boards: who was there, and what they drew.

None of it is written of real boards: their watts are not known, nor is who was away.
"""

from __future__ import annotations

from typing import Any

from strategies.round_result import RoundResult


def of_client(result: RoundResult, device_id: str) -> dict[str, Any]:
    """Of one client in ``decisions.jsonl``; what is not known is absent."""
    known = {
        "arrival_s": result.arrival_s,
        "modelled_energy_j": result.modelled_energy_j,
        "battery_j": result.battery_j,
    }
    return {name: of[device_id] for name, of in known.items() if device_id in of}


def of_round(result: RoundResult, modelled_energy_total_j: float | None) -> dict[str, Any]:
    """Of one round in ``rounds.jsonl``.

    Args:
        result: of the round.
        modelled_energy_total_j: over the run; None where no board is simulated.
    """
    if modelled_energy_total_j is None:
        return {}
    record: dict[str, Any] = {
        "clients_away": len(result.away),
        "clients_lost": len(result.lost),
        "modelled_energy_j": sum(result.modelled_energy_j.values(), 0.0),
        "modelled_energy_total_j": modelled_energy_total_j,
    }
    if result.simulated_wait_s:
        record["simulated_wait_s"] = result.simulated_wait_s
    for name, reasons in (("away", result.away), ("lost", result.lost)):
        if reasons:
            record[name] = dict(sorted(reasons.items()))
    return record
