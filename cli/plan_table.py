"""The table of ``fedfreeze plan``: a row for boards that will do the same."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.layer_bar import bar, legend
from cli.text_table import columns, figure, widths_of
from fedfreeze.plan import PlanCost
from strategies.forecast import Forecast, Planned, Prospect, Refusal

# Of more layers, names are left to --explain.
MOST_NAMES = 12

_UNASKED = "*"
_MOST_IDS = 3
_HEADER = ("board", "ep", "batch", "down", "train", "up", "MiB", "kB", "J", "limit")
_LAYERS_AT = 1  # the bar's column, where it is one


@dataclass(frozen=True)
class Group:
    """Boards of one profile with one plan."""

    members: tuple[Prospect, ...]

    @property
    def first(self) -> Prospect:
        """Who stands for all."""
        return self.members[0]

    @property
    def name(self) -> str:
        """For the first column."""
        count = f"{len(self.members)} x " if len(self.members) > 1 else ""
        return f"{count}{self.first.board.name}{_star(self.first)}"


def groups(forecast: Forecast, *, each: bool = False) -> list[Group]:
    """Boards that do the same, in the order of the first of them; or each by itself."""
    found: dict[object, list[Prospect]] = {}
    for prospect in forecast.prospects:
        key = prospect.device_id if each else _sameness(prospect, forecast)
        found.setdefault(key, []).append(prospect)
    return [Group(tuple(members)) for members in found.values()]


def table(forecast: Forecast, *, width: int, each: bool = False) -> list[str]:
    """Lines for the boards that can train, then one for those that sit out."""
    found = groups(forecast, each=each)
    training = [group for group in found if isinstance(group.first.outcome, Planned)]
    lines = _rows(training, forecast, width, each=each) if training else []
    for group in found:
        if isinstance(group.first.outcome, Refusal):
            said = f"{_named(group, each=each)} sits out: {_refusal(group)}"
            lines += textwrap.wrap(said, width, subsequent_indent="  ")
    return lines


def notes(forecast: Forecast, *, width: int, each: bool = False) -> list[str]:
    """What a reader of the table must know, wrapped."""
    outcomes = [prospect.outcome for prospect in forecast.prospects]
    bars = [bar(o.plan, forecast.layout) for o in outcomes if isinstance(o, Planned)]
    names = forecast.layout.names
    said = []
    if bars:
        listed = f": {', '.join(names)}" if len(names) <= MOST_NAMES else ""
        said.append(f"{len(names)} layers from the input on{listed}; {legend(bars)}.")
        said.append(
            "Seconds down, training and up; MiB of memory; kB sent at most; J of the board's own "
            "work."
        )
    if any(len(group.members) > 1 for group in groups(forecast, each=each)):
        said.append("Rows of several boards hold the largest figures; --each shows every board.")
    if any(not prospect.is_asked for prospect in forecast.prospects):
        said.append(f"{_UNASKED} is not asked in this round.")
    if forecast.untrainable:
        limits = ", ".join(f"{name} ({limit})" for name, limit in forecast.untrainable.items())
        said.append(f"No board can train {limits}.")
    if forecast.number > 1:
        said.append(
            f"Boards are as they will be in round {forecast.number}. What the policy will have "
            "seen by then is not known: no layer is frozen as settled here, and nothing counts as "
            "trained before."
        )
    return [line for text in said for line in textwrap.wrap(text, width)]


def _rows(training: Sequence[Group], forecast: Forecast, width: int, *, each: bool) -> list[str]:
    rows = [_cells(group, each=each) for group in training]
    bars = [_bar(group, forecast) for group in training]
    wide = widths_of(["layers"], [[text] for text in bars])[0]
    for gap in (2, 1):
        needed = sum(widths_of(_HEADER, rows)) + gap * len(_HEADER)
        if needed + wide <= width:
            header = _with_bar(_HEADER, "layers")
            both = [_with_bar(row, text) for row, text in zip(rows, bars, strict=True)]
            return columns(header, both, gap=gap, left=_LAYERS_AT + 1)
    gap = 2 if needed + len(_HEADER) - 1 <= width else 1
    head, *lines = columns(_HEADER, rows, gap=gap)
    indented = [
        textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ") for text in bars
    ]
    pairs = zip(lines, indented, strict=True)
    return [head, *(line for row, below in pairs for line in (row, *below))]


def _with_bar(row: Sequence[str], text: str) -> list[str]:
    return [*row[:_LAYERS_AT], text, *row[_LAYERS_AT:]]


def _cells(group: Group, *, each: bool) -> list[str]:
    planned = [p.outcome for p in group.members if isinstance(p.outcome, Planned)]
    plan = planned[0].plan
    parts = f"/{plan.micro_batches}" if plan.micro_batches > 1 else ""

    def most(of: Callable[[PlanCost], float | None]) -> float:
        return max(of(one.cost) or 0.0 for one in planned)

    return [
        _name(group, each=each),
        str(plan.epochs),
        f"{plan.batch_size}{parts}",
        figure(most(lambda cost: cost.modelled_download_s)),
        figure(most(lambda cost: cost.modelled_compute_s)),
        figure(most(lambda cost: cost.modelled_upload_s)),
        figure(most(lambda cost: cost.modelled_memory_bytes) / 2**20),
        figure(max(one.upload_bytes for one in planned) / 1e3),
        figure(most(lambda cost: cost.modelled_energy_j)),
        plan.binding or "-",
    ]


def _bar(group: Group, forecast: Forecast) -> str:
    outcome = group.first.outcome
    assert isinstance(outcome, Planned), "only boards with a plan have a row"
    return bar(outcome.plan, forecast.layout)


def _name(group: Group, *, each: bool) -> str:
    first = group.first
    return f"{first.device_id} {first.board.name}{_star(first)}" if each else group.name


def _named(group: Group, *, each: bool) -> str:
    """The name, with the device ids that the first column has no room for."""
    if each:
        return _name(group, each=True)
    ids = [member.device_id for member in group.members]
    shown = [*ids[:_MOST_IDS], "..."] if len(ids) > _MOST_IDS else ids
    return f"{group.name} ({', '.join(shown)})"


def _star(prospect: Prospect) -> str:
    return "" if prospect.is_asked else _UNASKED


def _refusal(group: Group) -> str:
    outcomes = [p.outcome for p in group.members if isinstance(p.outcome, Refusal)]
    details = sorted({outcome.detail for outcome in outcomes})
    others = f" (and {len(details) - 1} more like this)" if len(details) > 1 else ""
    return f"{outcomes[0].limit}: {outcomes[0].detail}{others}"


def _sameness(prospect: Prospect, forecast: Forecast) -> object:
    outcome = prospect.outcome
    start = (prospect.board.name, prospect.is_asked)
    if isinstance(outcome, Refusal):
        return (*start, outcome.limit)
    plan = outcome.plan
    what = (bar(plan, forecast.layout), plan.epochs, plan.batch_size, plan.micro_batches)
    stages = tuple((stage.share, stage.layers) for stage in plan.stages)
    return (*start, what, plan.binding, stages)
