"""Which board of the fleet each simulated client stands for.

A simulated client is named by its ``partition-id`` and finds its board by that and by
``num-partitions`` (:mod:`client_app.resources`). The server finds the same one by the name and the
number of simulated nodes. Where it does not, because somebody started SuperNodes by hand with
other numbers, the profile that the client reports tells, and the client has no seat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from device_profiles.board import Board
from device_profiles.fleet import Fleet
from device_profiles.presence import Presence
from fedfreeze.messages import SIMULATED


@dataclass(frozen=True)
class Seat:
    """A simulated client's place in the fleet: its board, and how that takes part."""

    board: Board
    presence: Presence


def is_simulated(device_id: str) -> bool:
    """Whether a device is simulated, by its name."""
    return device_id.startswith(SIMULATED)


def seats(fleet: Fleet, profiles: Mapping[str, str], clients: int) -> dict[str, Seat]:
    """The seats of the simulated clients among some devices; real boards have none.

    Args:
        fleet: of the run.
        profiles: what each device says it is, by device id.
        clients: number of simulated nodes.
    """
    found = {}
    for device_id, profile in sorted(profiles.items()):
        index = _index(device_id)
        if index is None or index >= clients:
            continue
        seat = Seat(fleet.board(index, clients), fleet.presence(index, clients))
        if seat.board.name == profile:
            found[device_id] = seat
    return found


def _index(device_id: str) -> int | None:
    digits = device_id.removeprefix(SIMULATED)
    if not is_simulated(device_id) or not (digits.isascii() and digits.isdigit()):
        return None
    # As the client writes it, so that no two names have one index; the limit is that of `int`.
    index = int(digits) if len(digits) < 20 else -1
    return index if device_id == f"{SIMULATED}{index:04d}" else None
