"""What a freeze policy is: advice before a round, learning after it, measuring during it.

A policy is one class in one file. Its server half (:meth:`FreezePolicy.advise`,
:meth:`FreezePolicy.observe`) says per client which layers it would freeze and how much each of the
others is worth; the planner fits that to the board. Its client half (:meth:`FreezePolicy.watch`)
is a hook into local training.

``advise`` is pure: the same state and views give the same advice, so that the audit log, which
records both, can be replayed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from fedfreeze.capacity import Capacity
from fedfreeze.layout import Layout
from fedfreeze.plan import Plan, Reason
from fedfreeze.settings import Settings
from strategies.local_step import LayerMeasures, LocalStep

if TYPE_CHECKING:  # which is made of the planner's parts, and these of advice
    from strategies.outlook import Outlook


@dataclass(frozen=True)
class RoundView:
    """The round that is about to be planned (``number`` counts from 1).

    Attributes:
        seed: of the run; for policies that draw.
    """

    number: int
    rounds: int
    learning_rate: float
    seed: int = 0


@dataclass(frozen=True)
class ClientView:
    """What the server knows of one client before the round.

    Attributes:
        feasible: per layer, whether the board can train it together with every layer above it.
        outlook: answers what a set of layers would take.
    """

    device_id: str
    capacity: Capacity
    examples: int
    feasible: Mapping[str, bool]
    outlook: Outlook


@dataclass(frozen=True)
class StageAdvice:
    """A share of the local steps and the layers that may train during it."""

    share: float
    layers: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """What a policy wants of one client in one round.

    Attributes:
        frozen: layers that must not train, with the reason.
        values: worth of training each other layer, 0 or more. The plan is the one of the greatest
            sum that the board can bear.
        must_train: layers that come before all others, as far as they fit.
        stages: how the local steps are divided; one stage of everything when empty.
        inputs: per layer, the numbers behind the decision, for the audit log.
        binding: the limit that shaped this advice, where it is a suggestion to be fitted again.
        covers: layers that the coverage of the fleet asks of this client; they come before those
            that must train.
    """

    frozen: Mapping[str, Reason]
    values: Mapping[str, float]
    must_train: tuple[str, ...] = ()
    stages: tuple[StageAdvice, ...] = ()
    inputs: Mapping[str, Mapping[str, float | int | None]] = field(default_factory=dict)
    binding: str | None = None
    covers: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClientOutcome:
    """What one used client did: its final plan, its weight, and what it measured per layer."""

    plan: Plan
    weight: float
    measures: Mapping[str, LayerMeasures]


@dataclass(frozen=True)
class RoundOutcome:
    """A merged round, as a policy sees it.

    Attributes:
        clients: by device id; only those whose update was merged.
        movement: per trained layer, norm of the global step over the norm of the layer before it.
        step_norm: per trained layer, the l2 norm of the global step.
        validation_loss: on the server's own split after the merge; None when nobody measured it.
    """

    number: int
    learning_rate: float
    clients: Mapping[str, ClientOutcome]
    movement: Mapping[str, float]
    step_norm: Mapping[str, float]
    validation_loss: float | None


class FreezePolicy(ABC):
    """Base of the policies; ``name`` is what the strategy TOML calls it."""

    name: ClassVar[str]
    Settings: ClassVar[type[Settings]]

    def __init__(self, settings: Any, layout: Layout) -> None:
        self.settings = settings
        self.layout = layout

    @abstractmethod
    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """What this client should freeze in this round; must not change the policy's state."""

    def observe(self, outcome: RoundOutcome) -> None:  # noqa: B027 - most policies do not learn
        """Learn from a merged round."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold, as JSON values."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - as above
        """Take back what :meth:`state` gave."""

    def watch(self, view: RoundView) -> LocalStep:
        """The client half: a hook into local training; gradient norms are measured anyway."""
        del view
        return LocalStep()
