"""``fedfreeze plan --explain``: one board, layer by layer and limit by limit."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from cli.plan_table import MOST_NAMES, groups
from cli.text_table import columns
from device_profiles.cost import training_flops
from fedfreeze.errors import ConfigError
from fedfreeze.plan import Plan
from fedfreeze.toml_faults import did_you_mean
from fedfreeze.units import Dimension, written
from strategies.forecast import Forecast, Planned, Prospect, Refusal
from strategies.margins import Margin, margins

# A layer, whether it trains, and why.
Decided = tuple[str, str, str]

_BYTES, _SECONDS, _JOULES = Dimension.BYTES, Dimension.SECONDS, Dimension.JOULES


_WORTH = (
    "A layer's worth is how much the policy wants it trained; of all sets of layers that the board "
    "can bear, the plan is the one of the greatest worth in all."
)


def chosen(forecast: Forecast, name: str) -> Prospect:
    """The board that is meant: by its device id, or the first one of a profile.

    Raises:
        ConfigError: there is none.
    """
    for prospect in forecast.prospects:
        if name in {prospect.device_id, prospect.board.name}:
            return prospect
    profiles = list(dict.fromkeys(prospect.board.name for prospect in forecast.prospects))
    ids = [prospect.device_id for prospect in forecast.prospects]
    raise ConfigError(
        f"--explain: expected one of {', '.join(profiles)}, or a device id from {ids[0]} to "
        f'{ids[-1]}, got "{name}"{did_you_mean(name, [*profiles, *ids])}'
    )


def explained(forecast: Forecast, prospect: Prospect, *, width: int) -> list[str]:
    """Lines: who it is, why each layer trains or not, what that costs, and how close limits are."""
    lines = textwrap.wrap(_heading(forecast, prospect), width)
    outcome = prospect.outcome
    if isinstance(outcome, Refusal):
        why = f"It sits out: {outcome.limit}: {outcome.detail}."
        return [*lines, "", *textwrap.wrap(why, width)]
    return [
        *lines,
        "",
        *_layers(forecast, prospect, outcome.plan, width),
        "",
        *textwrap.wrap(_WORTH, width),
        "",
        *_costs(forecast, prospect, outcome),
        "",
        *_margins(margins(prospect, outcome, forecast.layout, forecast.limits)),
        "",
        _binding(outcome.plan),
    ]


def _heading(forecast: Forecast, prospect: Prospect) -> str:
    group = next(g for g in groups(forecast) if prospect in g.members)
    alike = len(group.members) - 1
    others = f"; {alike} more like it" if alike else ""
    unasked = "" if prospect.is_asked else "; not asked in this round, were it so:"
    capacity = prospect.capacity
    can = (
        f"{written(capacity.flops_per_s.value, Dimension.FLOPS_PER_S)}, "
        f"{written(capacity.memory_bytes.value, _BYTES)} to train in, "
        f"{written(capacity.uplink_bytes_per_s.value, Dimension.BYTES_PER_S)} up, "
        f"{written(capacity.downlink_bytes_per_s.value, Dimension.BYTES_PER_S)} down"
    )
    return (
        f"{prospect.device_id}, a {prospect.board.name} with {prospect.load.examples} "
        f"examples: {can}{others}{unasked}"
    )


def _layers(forecast: Forecast, prospect: Prospect, plan: Plan, width: int) -> list[str]:
    decided = [(name, *_decision(prospect, plan, name)) for name in forecast.layout.names]
    rows = decided if len(decided) <= MOST_NAMES else _joined(decided)
    long = max(len("layer"), *(len(row[0]) for row in rows))
    lines = [f"{'layer'.ljust(long)}  decision  why"]
    for name, decision, why in rows:
        begin = f"{name.ljust(long)}  {decision.ljust(8)}  "
        room = max(width - len(begin), 20)
        first, *rest = textwrap.wrap(why, room) or [""]
        lines.append(begin + first)
        lines += [" " * len(begin) + line for line in rest]
    return lines


def _joined(decided: Sequence[Decided]) -> list[Decided]:
    """Neighbours of which the same is said in one row.

    >>> _joined([("a", "trains", "x"), ("b", "trains", "x"), ("c", "frozen", "y")])
    [('a ... b', 'trains', 'x'), ('c', 'frozen', 'y')]
    """
    rows = []
    for (decision, why), alike in groupby(decided, key=lambda row: row[1:]):
        names = [row[0] for row in alike]
        name = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"
        rows.append((name, decision, why))
    return rows


def _decision(prospect: Prospect, plan: Plan, name: str) -> tuple[str, str]:
    frozen = plan.frozen.get(name)
    if frozen is not None:
        return "frozen", f"{frozen.code}: {frozen.detail}"
    return "trains", _worth(prospect, name)


def _worth(prospect: Prospect, name: str) -> str:
    advice = prospect.advice
    if name in advice.covers:
        return "coverage asks this board for it"
    if name in advice.must_train:
        return "the policy says that it must"
    return f"worth {advice.values.get(name, 0.0):.3g}"


def _costs(forecast: Forecast, prospect: Prospect, planned: Planned) -> list[str]:
    plan, cost = planned.plan, planned.cost
    flops = plan.epochs * sum(
        stage.share * training_flops(forecast.layout, stage.layers, prospect.load.examples)
        for stage in plan.stages
    )
    batches = f"batches of {plan.batch_size}"
    if plan.micro_batches > 1:
        batches += f" in {plan.micro_batches} parts"
    rows = [
        (
            "download",
            written(cost.modelled_download_s, _SECONDS),
            f"{written(prospect.load.download_bytes, _BYTES)}",
        ),
        (
            "training",
            written(cost.modelled_compute_s, _SECONDS),
            f"{flops:.3g} operations: {plan.epochs} epoch(s), {batches}",
        ),
        (
            "upload",
            written(cost.modelled_upload_s, _SECONDS),
            (
                f"{written(plan.upload_budget_bytes, _BYTES)} of packet and "
                f"{written(planned.envelope_bytes, _BYTES)} around it, at most"
            ),
        ),
        ("memory", written(cost.modelled_memory_bytes, _BYTES), "at the peak of the round"),
    ]
    if cost.modelled_energy_j is not None:
        rows.append(
            ("energy", written(cost.modelled_energy_j, _JOULES), "of its own work, without waiting")
        )
    return columns(("cost", "", ""), rows, left=3)


def _margins(found: Sequence[Margin]) -> list[str]:
    rows = [
        (
            margin.limit,
            _amount(margin.takes, margin),
            _amount(margin.has, margin),
            f"{100 * margin.share:.0f} %",
        )
        for margin in found
    ]
    return columns(("limit", "takes", "of", "share"), rows)


def _amount(value: float, margin: Margin) -> str:
    return f"{value:.3g}" if margin.dimension is None else written(value, margin.dimension)


def _binding(plan: Plan) -> str:
    if plan.binding is None:
        return "No limit took anything from this plan."
    return f"The limit that shaped the plan: {plan.binding}."
