"""Beside the table of ``fedfreeze plan``: boards that are not always there, and batteries."""

from __future__ import annotations

from device_profiles.fleet import Fleet
from device_profiles.presence import ALWAYS, Presence
from fedfreeze.units import Dimension, written
from strategies.forecast import Forecast

_J_PER_WH = 3600.0


def presence_notes(fleet: Fleet, forecast: Forecast, *, with_totals: bool) -> list[str]:
    """What the table does not show of how boards take part; nothing of those always there.

    Args:
        fleet: that the boards are of.
        forecast: with the boards, in the order of the fleet.
        with_totals: whether the totals of the run follow.
    """
    clients = len(forecast.prospects)
    counts: dict[tuple[str, Presence], int] = {}
    for index, prospect in enumerate(forecast.prospects):
        presence = fleet.presence(index, clients)
        if presence != ALWAYS:
            key = (prospect.board.name, presence)
            counts[key] = counts.get(key, 0) + 1
    if not counts:
        return []
    kinds = "; ".join(
        f"{f'{count} x ' if count > 1 else ''}{name} {way(presence)}"
        for (name, presence), count in counts.items()
    )
    where = "the totals count" if with_totals else "--totals counts"
    return [f"The table takes every board to be there. In this fleet, {kinds}; {where} that in."]


def way(presence: Presence) -> str:
    """How one board takes part, in words.

    >>> way(Presence(0.8))
    'is there in 80 % of the rounds'
    >>> way(Presence(((0.0, 600.0), (1200.0, 14400.0))))
    'is there in 2 windows, from 0 s to 14400 s'
    """
    said = []
    availability = presence.availability
    if isinstance(availability, tuple):
        begin_s, end_s = availability[0][0], availability[-1][1]
        windows = "1 window" if len(availability) == 1 else f"{len(availability)} windows"
        said.append(f"is there in {windows}, from {begin_s:.10g} s to {end_s:.10g} s")
    elif availability < 1:
        said.append(f"is there in {100 * availability:.3g} % of the rounds")
    if presence.battery is not None:
        held_j = presence.battery.start_j
        said.append(
            f"has {written(held_j, Dimension.JOULES)} ({held_j / _J_PER_WH:.3g} Wh) of battery"
        )
    return " and ".join(said)
