"""Fitting a policy's advice to a board: one pure function, run on both sides.

The server fits with the capacity that it knows and suggests; the client fits again with the
capacity that it has now and may only freeze more. Of everything that the board's memory, its
uplink, the deadline and the limits of a round allow, a plan is

1. of the greatest worth: the sum of the trained layers' values, each times the share of the steps
   in which it may train; layers that must train come before all others (:mod:`strategies.worth`);
2. then of the most epochs, and of the largest packet;
3. then with batches in the fewest parts, with the most layers, the fewest modelled microseconds,
   and the deepest layers.

Only a frozen *prefix* saves activations and input gradients, so everything is priced by the
shallowest layer that trains, and what trains above it is a knapsack. Up to twelve layers every set
is looked at (:mod:`strategies.subsets`); above, worth is sought by :mod:`strategies.knapsack`, and
the rest follows from the set that it finds. A board with more of anything gets no plan of less
worth: up to twelve layers always, above as far as the knapsack is solved.
"""

from __future__ import annotations

from collections.abc import Mapping

from device_profiles.cost import training_memory_bytes
from fedfreeze.capacity import Capacity
from fedfreeze.errors import PlanError
from fedfreeze.layout import Layout
from fedfreeze.plan import Plan, Reason
from strategies.best_choice import best_choice
from strategies.bounds import Limits, Load
from strategies.freeze.policy import Advice, StageAdvice
from strategies.means import Means
from strategies.pieces import Pieces
from strategies.reasons import binding, given_up, lacking, refusal
from strategies.shortages import NO_WATTS
from strategies.stages import merged, unstaged
from strategies.worth import worth_of

__all__ = ["Limits", "Load", "as_advice", "feasible", "fit", "reachable"]


def feasible(layout: Layout, capacity: Capacity, limits: Limits) -> dict[str, bool]:
    """Per layer, whether the board's memory allows to train it with every layer above it (R)."""
    names = layout.names
    part = -(-limits.batch_size // limits.splits[-1])
    return {
        name: training_memory_bytes(layout, names[at:], part, limits.optimizer_slots)
        <= capacity.memory_bytes.value
        for at, name in enumerate(names)
    }


def reachable(
    layout: Layout, capacity: Capacity, limits: Limits, load: Load
) -> dict[str, str | None]:
    """Per trainable layer, the limit that keeps the board from training it alone, or None."""
    means = Means(layout, capacity, limits, load)
    return {
        layer.name: None if means.terms([layer.name]) else lacking(means, layer.name).limit
        for layer in layout
        if layer.parameters
    }


def fit(advice: Advice, *, layout: Layout, capacity: Capacity, limits: Limits, load: Load) -> Plan:
    """The plan that follows the advice as far as the board can.

    Raises:
        PlanError: not even one layer fits; names the limit that is short and by how much.
    """
    frozen = _untrained(advice, layout)
    free = [name for name in layout.names if name not in frozen]
    if not free:
        raise PlanError("the policy froze every layer; one at least must train", "policy")
    if limits.energy_j_per_round is not None and load.board is None:
        raise PlanError(NO_WATTS, "energy")
    means = Means(layout, capacity, limits, load, advice.stages)
    pieces = Pieces(means, free)
    choice = best_choice(means, pieces, worth_of(advice, free))
    if choice is None:
        raise refusal(means, free)
    trained = tuple(free[at] for at in choice.places)
    lost = given_up(means, pieces, choice)
    frozen |= lost
    return Plan(
        stages=merged(advice.stages, trained),
        epochs=choice.terms.epochs,
        batch_size=limits.batch_size,
        upload_budget_bytes=choice.terms.packet_bytes,
        frozen={name: frozen[name] for name in layout.names if name in frozen},
        binding=advice.binding or binding(means, trained, choice.terms, lost.values()),
        cost=means.cost(trained, choice.terms),
        micro_batches=choice.terms.splits,
        covers=tuple(name for name in trained if name in advice.covers),
    )


def as_advice(suggestion: Plan, values: Mapping[str, float] | None = None) -> Advice:
    """A suggested plan as advice, for the client's own fit: what it freezes stays frozen."""
    worth = values or {name: float(at) for at, name in enumerate(suggestion.trained, start=1)}
    return Advice(
        frozen=suggestion.frozen,
        values=worth,
        stages=tuple(StageAdvice(stage.share, stage.layers) for stage in suggestion.stages),
        binding=suggestion.binding,
        covers=suggestion.covers,
    )


def _untrained(advice: Advice, layout: Layout) -> dict[str, Reason]:
    """What does not train, whatever the board can do."""
    frozen = dict(advice.frozen)
    staged_away = unstaged(advice.stages, layout.names)
    for layer in layout:
        if layer.name in staged_away:
            frozen.setdefault(layer.name, Reason("fixed", "no stage trains this layer"))
        if not layer.parameters:
            # Whatever the policy thinks of it, and under whichever reason: it cannot train.
            frozen[layer.name] = Reason("fixed", "none of its parameters is trainable")
    return frozen
