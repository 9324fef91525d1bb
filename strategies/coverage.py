"""Coverage: no layer is left to the strong boards alone, or to nobody.

Boards that choose for themselves choose alike: all weak ones train the last layers, and what the
policy has settled on freezing is frozen everywhere. With ``[clients] q-min`` above 0, every layer
is trained by that many different clients within each block of ``coverage-rounds`` rounds, as far as
their boards can train it at all. It follows from what the audit log records: what each client of
the cohort reaches, and whose updates were merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedfreeze.capacity import Capacity
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layout
from strategies.assignment import Reach, assigned
from strategies.bounds import Limits, Load
from strategies.freeze.policy import Advice
from strategies.planner import fit, reachable
from strategies.stages import unstaged

# Under these codes a policy freezes what has settled; coverage may thaw it for a round.
SETTLED = ("score", "window")


@dataclass(frozen=True)
class Wanted:
    """What one client of the cohort is planned from."""

    capacity: Capacity
    advice: Advice
    load: Load


@dataclass(frozen=True)
class Covered:
    """What coverage found and asks for in one round.

    Attributes:
        reach: by device id, for the cohort.
        asked: by device id, layers that a client must train before all others.
        trained: by layer, the clients that had trained it in this block before the round.
    """

    reach: Mapping[str, Reach]
    asked: Mapping[str, tuple[str, ...]]
    trained: Mapping[str, frozenset[str]]


class Coverage:
    """Remembers who has trained what in the present block of rounds.

    Args:
        q_min: clients that each layer needs in a block; 0 asks nobody for anything.
        rounds: of a block; round 1 begins the first.
    """

    def __init__(self, layout: Layout, limits: Limits, *, q_min: int, rounds: int) -> None:
        self._layout = layout
        self._limits = limits
        self._q_min = q_min
        self._rounds = rounds
        self._block = 0
        self._trained: dict[str, set[str]] = {}

    @property
    def is_on(self) -> bool:
        """Whether anybody is asked for anything."""
        return self._q_min > 0

    def cover(self, number: int, cohort: Mapping[str, Wanted]) -> Covered:
        """What the clients of a round are asked for."""
        self._enter(number)
        reach = {i: reach_of(wanted, self._layout, self._limits) for i, wanted in cohort.items()}
        trained = {layer: frozenset(clients) for layer, clients in self._trained.items()}
        left = self._rounds - (number - 1) % self._rounds
        asked = assigned(reach, trained, q_min=self._q_min, rounds_left=left)
        return Covered(reach, asked, trained)

    def observe(self, number: int, trained: Mapping[str, Iterable[str]]) -> None:
        """Note, by device id, the layers of the updates that were merged."""
        self._enter(number)
        for device_id, layers in trained.items():
            for layer in layers:
                self._trained.setdefault(layer, set()).add(device_id)

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold, as JSON values."""
        trained = {layer: sorted(clients) for layer, clients in sorted(self._trained.items())}
        return {"block": self._block, "trained": trained}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back :meth:`state`."""
        self._block = state["block"]
        self._trained = {layer: set(clients) for layer, clients in state["trained"].items()}

    def _enter(self, number: int) -> None:
        block = (number - 1) // self._rounds
        if block != self._block:
            self._block, self._trained = block, {}


def reach_of(wanted: Wanted, layout: Layout, limits: Limits) -> Reach:
    """What one client could train."""
    advice = wanted.advice
    settled = {name for name, reason in advice.frozen.items() if reason.code in SETTLED}
    ruled_out = (set(advice.frozen) - settled) | unstaged(advice.stages, layout.names)
    short = reachable(layout, wanted.capacity, limits, wanted.load)
    layers = tuple(name for name, limit in short.items() if limit is None and name not in ruled_out)
    return Reach(
        layers=layers,
        roomy=set(layers) <= _trained(wanted, covering(advice, tuple(settled)), layout, limits),
        planned=_trained(wanted, advice, layout, limits),
        settled=frozenset(settled & set(layers)),
    )


def covering(advice: Advice, layers: tuple[str, ...]) -> Advice:
    """The advice with these layers thawed and first of all."""
    if not layers:
        return advice
    frozen = {name: reason for name, reason in advice.frozen.items() if name not in layers}
    return replace(advice, frozen=frozen, covers=layers)


def untrainable(
    layout: Layout, limits: Limits, boards: Iterable[tuple[Capacity, Load]]
) -> dict[str, str]:
    """By layer that none of these boards can train alone, the limit that the last one lacks."""
    found: dict[str, str] | None = None
    for capacity, load in boards:
        short = reachable(layout, capacity, limits, load)
        names = short if found is None else found
        found = {name: limit for name in names if (limit := short[name]) is not None}
        if not found:
            break
    return found or {}


def _trained(wanted: Wanted, advice: Advice, layout: Layout, limits: Limits) -> frozenset[str]:
    try:
        plan = fit(advice, layout=layout, capacity=wanted.capacity, limits=limits, load=wanted.load)
    except PlanError:
        return frozenset()
    return frozenset(plan.trained)
