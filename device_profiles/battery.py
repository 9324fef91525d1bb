"""How long a battery carries a board through its round."""

from __future__ import annotations

from device_profiles.board import Board
from fedfreeze.plan import PlanCost


def lasts_s(board: Board, cost: PlanCost, held_j: float) -> float:
    """Seconds after which a battery is empty that holds ``held_j`` when the round begins.

    The board downloads, computes and uploads one after another and idles from then on, with the
    watts of :func:`device_profiles.cost.modelled_energy_j`.
    """
    power = board.power
    passed_s = 0.0
    for watts, seconds in (
        (power.radio.value, cost.modelled_download_s),
        (power.compute.value, cost.modelled_compute_s),
        (power.radio.value, cost.modelled_upload_s),
    ):
        if held_j < watts * seconds:
            return passed_s + held_j / watts
        held_j -= watts * seconds
        passed_s += seconds
    return passed_s + held_j / power.idle.value
