"""Who of a simulated fleet is there, who leaves in mid-round, and what everybody draws.

A round is asked of those who are there when it begins. While nobody is, the server waits: until
the next window opens, and where boards come by chance, one round deadline at a time. A board whose
window closes or whose battery runs empty before its update has arrived is lost to the round; it
has trained, and its packet comes back into its residual. Nothing charges a battery, and each
drains as long as the run lasts: by the work of its rounds, and by idling otherwise.

Real boards have no part in this, nor have clients without a seat (:mod:`strategies.seats`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from device_profiles.battery import lasts_s
from device_profiles.clock import VirtualClock, round_times
from device_profiles.cost import modelled_energy_j
from device_profiles.fleet import Fleet
from device_profiles.presence import available, leaves_s, opens_s
from fedfreeze.errors import FleetError
from fedfreeze.plan import PlanCost
from strategies.seats import Seat, is_simulated, seats

# So often the server looks for boards that come by chance; one that is there in a thousandth of
# all rounds is found but for a chance of e^-100.
MOST_LOOKS = 100_000


@dataclass(frozen=True)
class Opening:
    """How a round began.

    Attributes:
        away: why, by device id, of those who are not there.
        wait_s: seconds in which nobody was there, before the round.
        awaited_s: when somebody who is away may come; None where nobody does.
        energy_j: by device id, what simulated boards drew while the server waited.
    """

    away: Mapping[str, str]
    wait_s: float
    awaited_s: float | None
    energy_j: Mapping[str, float]


@dataclass(frozen=True)
class Closing:
    """How a round went by the clock.

    Attributes:
        round_s: its length.
        late: devices whose update came after the deadline, sorted.
        lost: why, by device id, for boards that left before their update had arrived.
        arrival_s: by device id, when an update arrived or would have, in seconds since the run
            began; of simulated boards.
        energy_j: by device id, what each simulated board drew.
        battery_j: by device id, what is left in the batteries of those that have one.
    """

    round_s: float
    late: tuple[str, ...]
    lost: Mapping[str, str]
    arrival_s: Mapping[str, float]
    energy_j: Mapping[str, float]
    battery_j: Mapping[str, float]


class Attendance:
    """Keeps the batteries of one run, and says for each round who takes part.

    Args:
        fleet: that is simulated, if one is.
        seed: of the run.
        deadline_s: simulated seconds that the server waits for updates.

    Attributes:
        modelled_energy_total_j: of all asked boards in all rounds; None where none is simulated.
    """

    def __init__(self, fleet: Fleet | None, *, seed: int, deadline_s: float) -> None:
        self._fleet = fleet
        self._seed = seed
        self._deadline_s = deadline_s
        self._clients = 0
        self._seats: dict[str, Seat] = {}
        self._battery_j: dict[str, float] = {}
        self.modelled_energy_total_j: float | None = None

    def open_round(
        self, number: int, profiles: Mapping[str, str], nodes: int, clock: VirtualClock
    ) -> Opening:
        """Wait until somebody is there, and say who is not.

        Args:
            number: of the round that begins.
            profiles: what each device that is online says it is, by device id.
            nodes: that are online, real and simulated.
            clock: is moved on by the wait.

        Raises:
            FleetError: nobody is there, and nobody comes any more.
        """
        self._take_seats(profiles, nodes)
        now_s = at_s = clock.now_s
        look = 0
        while len(away := self._away(profiles, number, look, at_s, now_s)) == len(profiles):
            next_s = self._next_s(away, at_s, now_s, by_chance=look < MOST_LOOKS)
            if math.isinf(next_s):
                raise FleetError(_nobody_comes(number, at_s, away))
            at_s, look = next_s, look + 1
        drawn_j = self._draw({}, at_s - now_s)
        clock.move_to(at_s)
        awaited_s = self._next_s(away, at_s, at_s)
        return Opening(away, at_s - now_s, None if math.isinf(awaited_s) else awaited_s, drawn_j)

    def close_round(
        self,
        costs: Mapping[str, PlanCost],
        clock: VirtualClock,
        *,
        asked: Container[str],
        awaited_s: float | None = None,
    ) -> Closing:
        """Say what arrived when, what did not, and what each board drew.

        Args:
            costs: of those who trained, by device id.
            clock: is moved on by the round.
            asked: device ids whose joules count for the run.
            awaited_s: when somebody else may come, where of those who are there nobody can train:
                the next round begins then.
        """
        begin_s = clock.now_s
        late: tuple[str, ...] = ()
        lost: dict[str, str] = {}
        if awaited_s is not None:
            clock.move_to(awaited_s)
            round_s = clock.now_s - begin_s
        else:
            totals_s = {i: cost.modelled_total_s for i, cost in costs.items()}
            leave_s, why = self._leaving(costs, begin_s)
            times = round_times(totals_s, leave_s, self._deadline_s)
            clock.advance(times.round_s)
            round_s, late = times.round_s, times.late
            lost = {
                i: f"{why[i]} {totals_s[i] - leave_s[i]:.3g} s before its update would have arrived"
                for i in times.lost
            }
        drawn_j = self._draw(costs, round_s)
        if self._seats:
            spent_j = sum(joules for i, joules in drawn_j.items() if i in asked)
            self.modelled_energy_total_j = (self.modelled_energy_total_j or 0.0) + spent_j
        return Closing(
            round_s=round_s,
            late=late,
            lost=lost,
            arrival_s={
                i: begin_s + cost.modelled_total_s for i, cost in costs.items() if i in self._seats
            },
            energy_j=drawn_j,
            battery_j=dict(self._battery_j),
        )

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold, as JSON values."""
        return {
            "clients": self._clients,
            "battery_j": dict(sorted(self._battery_j.items())),
            "modelled_energy_total_j": self.modelled_energy_total_j,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back :meth:`state`."""
        self._clients = state["clients"]
        self._battery_j = dict(state["battery_j"])
        self.modelled_energy_total_j = state["modelled_energy_total_j"]

    # ---- who is there

    def _take_seats(self, profiles: Mapping[str, str], nodes: int) -> None:
        if self._fleet is None:
            return
        # Nobody moves up where a node is lost.
        simulated = nodes - sum(not is_simulated(device_id) for device_id in profiles)
        self._clients = max(self._clients, simulated)
        self._seats = seats(self._fleet, profiles, self._clients)
        for device_id, seat in self._seats.items():
            if seat.presence.battery is not None:
                self._battery_j.setdefault(device_id, seat.presence.battery.start_j)

    def _away(
        self, device_ids: Iterable[str], number: int, look: int, at_s: float, now_s: float
    ) -> dict[str, str]:
        """Why, by device id, of those who are not there at ``at_s``."""
        away = {}
        for device_id in device_ids:
            if device_id not in self._seats:
                continue
            presence = self._seats[device_id].presence
            if self._held_j(device_id, at_s - now_s) <= 0:
                away[device_id] = "its battery is empty"
            elif not available(
                presence,
                seed=self._seed,
                device_id=device_id,
                round_number=number,
                now_s=at_s,
                look=look,
            ):
                away[device_id] = _why_not(presence.availability, opens_s(presence, at_s))
        return away

    def _next_s(
        self, away: Iterable[str], at_s: float, now_s: float, *, by_chance: bool = True
    ) -> float:
        """When somebody who is away may come, after ``at_s``; infinite where nobody does."""
        next_s = math.inf
        for device_id in away:
            presence = self._seats[device_id].presence
            time_s = opens_s(presence, at_s)
            if by_chance and presence.availability and not isinstance(presence.availability, tuple):
                time_s = at_s + self._deadline_s
            if time_s < next_s and self._held_j(device_id, time_s - now_s) > 0:
                next_s = time_s
        return next_s

    def _held_j(self, device_id: str, idle_s: float) -> float:
        """What a battery holds after so many seconds of idling; infinite from the mains."""
        held_j = self._battery_j.get(device_id, math.inf)
        if math.isinf(held_j) or device_id not in self._seats:
            return held_j
        return held_j - self._seats[device_id].board.power.idle.value * idle_s

    # ---- who leaves, and what it takes

    def _leaving(
        self, costs: Mapping[str, PlanCost], begin_s: float
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Seconds after the round's beginning at which boards leave, and why, by device id."""
        leave_s: dict[str, float] = {}
        why: dict[str, str] = {}
        for device_id, cost in costs.items():
            if device_id not in self._seats:
                continue
            seat = self._seats[device_id]
            leave_s[device_id] = leaves_s(seat.presence, begin_s) - begin_s
            why[device_id] = "it left"
            if device_id in self._battery_j:
                empty_s = lasts_s(seat.board, cost, self._battery_j[device_id])
                if empty_s < leave_s[device_id]:
                    leave_s[device_id], why[device_id] = empty_s, "its battery was empty"
        return leave_s, why

    def _draw(self, costs: Mapping[str, PlanCost], seconds: float) -> dict[str, float]:
        """Take what so many seconds cost out of the batteries; who did not train idles."""
        drawn_j = {}
        for device_id, seat in self._seats.items():
            joules = (
                modelled_energy_j(seat.board, costs[device_id], seconds)
                if device_id in costs
                else seat.board.power.idle.value * seconds
            )
            if device_id in self._battery_j:
                joules = min(joules, self._battery_j[device_id])
                self._battery_j[device_id] -= joules
            drawn_j[device_id] = joules
        return drawn_j


def _why_not(availability: object, next_s: float) -> str:
    if availability == 0:
        return "its probability is 0"
    if not isinstance(availability, tuple):
        return "not there by chance"
    if math.isinf(next_s):
        return "its windows are over"
    return f"outside its windows until {next_s:.10g} s"


def _nobody_comes(number: int, at_s: float, away: Mapping[str, str]) -> str:
    reasons = Counter(away.values())
    counts = ", ".join(f"{why} ({reasons[why]})" for why in sorted(reasons))
    fewer = "" if number == 1 else f", or ask for {number - 1} round(s)"
    return (
        f"round {number}: expected somebody of {len(away)} simulated board(s) at {at_s:.10g} s or "
        f"later, got nobody: {counts}; give boards later windows, a higher probability or a fuller "
        f"battery in the fleet{fewer}"
    )
