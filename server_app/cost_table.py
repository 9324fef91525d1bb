"""What a client's round was predicted to cost beside what was measured, one row a quantity.

Predictions are those of the plan, before the fact: bytes and seconds of the download with the
capacity that the server planned with, everything else with the one that the board found.
"""

from __future__ import annotations

from device_profiles.board import boards, load_board
from fedfreeze.capacity import Capacity
from fedfreeze.messages import NO_VALUE, SIMULATED
from strategies.orders import Asked
from strategies.replies import Answer

Row = dict[str, float]

QUANTITIES = (
    "upload_bytes",
    "download_bytes",
    "memory_bytes",
    "download_s",
    "compute_s",
    "upload_s",
    "energy_j",
)


def cost_table(asked: Asked, capacity: Capacity, answer: Answer | None) -> dict[str, Row]:
    """``{"upload_bytes": {"modelled": ..., "measured": ...}, ...}``; what is not known is absent.

    Of a simulated board, seconds, memory and joules are not measured: they would be those of the
    machine that simulates it. Its modelled joules stand elsewhere, with those of waiting.

    Args:
        asked: the order.
        capacity: that it was planned with.
        answer: of a board that trained.
    """
    modelled: Row = {
        "download_bytes": asked.load.download_bytes,
        "download_s": asked.load.download_bytes / capacity.downlink_bytes_per_s.value,
    }
    measured: Row = {"download_bytes": asked.download_bytes}
    if answer is not None:
        modelled |= _of_the_plan(asked, answer)
        measured["upload_bytes"] = answer.upload_bytes
        if not asked.client.device_id.startswith(SIMULATED):
            modelled |= _joules(asked, answer)
            measured |= _on_the_board(answer)
    return {
        quantity: {
            name: values[quantity]
            for name, values in (("modelled", modelled), ("measured", measured))
            if quantity in values
        }
        for quantity in QUANTITIES
        if quantity in modelled or quantity in measured
    }


def _of_the_plan(asked: Asked, answer: Answer) -> Row:
    """Of the largest packet of the final plan, and the room that the order left beside it.

    A plan of the board's own travels in the reply and may need more than that.
    """
    upload_bytes = answer.plan.upload_budget_bytes + asked.load.envelope_bytes
    return {
        "upload_bytes": upload_bytes,
        "memory_bytes": answer.cost.modelled_memory_bytes,
        "compute_s": answer.cost.modelled_compute_s,
        "upload_s": upload_bytes / answer.capacity.uplink_bytes_per_s.value,
    }


def _joules(asked: Asked, answer: Answer) -> Row:
    """Of training alone, as a meter on the board counts: it does not run while messages travel."""
    watts = _compute_w(asked.client.profile, answer.capacity)
    return {} if watts is None else {"energy_j": watts * answer.cost.modelled_compute_s}


def _on_the_board(answer: Answer) -> Row:
    rows: Row = {"compute_s": answer.report.train_s}
    if answer.measured is not None:
        for name in ("memory_bytes", "download_s"):
            if (value := getattr(answer.measured, name)) != NO_VALUE:
                rows[name] = value
    # A sensor of the processor alone, or of some rails, does not see what a profile's watts are of.
    if answer.energy is not None and answer.energy.scope == "board":
        rows["energy_j"] = answer.energy.energy_j
    return rows


def _compute_w(profile: str, capacity: Capacity) -> float | None:
    """Watts of a board that trains; None where nobody named its profile, or it is not ours."""
    sources = {
        known.source
        for known in (
            capacity.flops_per_s,
            capacity.memory_bytes,
            capacity.uplink_bytes_per_s,
            capacity.downlink_bytes_per_s,
        )
    }
    if "assumed" in sources or profile not in boards():
        return None
    return load_board(profile).power.compute.value
