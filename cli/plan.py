"""``fedfreeze plan``: what each board of a fleet will do, before any of them is switched on."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from cli import plan_values, request
from cli.plan_explained import chosen, explained
from cli.plan_inputs import examples_of, layout_of
from cli.plan_presence import presence_notes
from cli.plan_table import notes, table
from cli.plan_totals import totals
from device_profiles.fleet import Fleet, fleet_from_text
from fedfreeze import plain_json
from fedfreeze.errors import ConfigError, FleetError, LayoutError, StateError
from strategies.forecast import Forecast, forecast
from strategies.run_forecast import RunForecast, run_forecast
from strategies.schema import Strategy


@dataclass(frozen=True)
class Outlook:
    """Everything that the command knows.

    Attributes:
        fleet: the one that is simulated.
        are_counted: whether the examples are those of the task, not a number that somebody said.
    """

    settings: Strategy
    fleet: Fleet
    examples: tuple[int, ...]
    are_counted: bool
    forecast: Forecast

    def run(self) -> RunForecast:
        """The whole run."""
        return run_forecast(self.settings, self.fleet, self.forecast, rounds=self.settings.rounds)


def plan(
    strategy: Annotated[str, typer.Argument(metavar="[STRATEGY]")] = "fedfreeze",
    *,
    fleet: Annotated[
        str | None, typer.Option(help="Boards to plan for: a name or a TOML file.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one key of the strategy."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the run.")] = None,
    clients: Annotated[
        int | None, typer.Option(min=1, help="Boards to simulate (default: the whole fleet).")
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(help="Folder with data sets (else $FEDFREEZE_DATA_DIR).")
    ] = None,
    examples: Annotated[
        int | None, typer.Option(min=1, help="Examples of each board, without looking at data.")
    ] = None,
    number: Annotated[
        int, typer.Option("--round", min=1, help="Round to plan; the policy has seen nothing.")
    ] = 1,
    explain: Annotated[
        str | None, typer.Option(metavar="BOARD", help="Explain one: a profile or a device id.")
    ] = None,
    show_totals: Annotated[
        bool, typer.Option("--totals", help="Add hours, MB and kWh of the whole run.")
    ] = False,
    rounds: Annotated[int | None, typer.Option(min=1, help="The same for so many rounds.")] = None,
    each: Annotated[
        bool, typer.Option("--each", help="A row for each board, however alike.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what each board will train, what that costs it, and which limit it meets.

    STRATEGY is a preset or a TOML file. Round 1 is planned as a run with the same seed
    plans it. Nothing is trained, and no board is asked.

    Example: fedfreeze plan fedfreeze --fleet mixed --explain rpi-zero-2w --totals
    """
    try:
        asked = request.new(
            strategy,
            fleet,
            overrides or [],
            seed=seed,
            rounds=rounds,
            clients=clients,
            data_dir=data_dir,
        )
        outlook = _outlook(asked, examples, number)
        explained_board = None if explain is None else chosen(outlook.forecast, explain)
    except (ConfigError, LayoutError, StateError) as error:
        if as_json:
            problems = error.problems if isinstance(error, ConfigError) else [str(error)]
            print(plain_json.text({"problems": problems}))
            raise typer.Exit(error.exit_code) from error
        raise
    if as_json:
        found = plan_values.values(
            outlook.settings, outlook.settings.fleet, outlook.forecast, outlook.run()
        )
        print(plain_json.text(found))
    else:
        width = shutil.get_terminal_size().columns
        has_totals = show_totals or rounds is not None
        lines = shown(outlook, strategy, width=width, each=each, has_totals=has_totals)
        if explained_board is not None:
            lines += ["", *explained(outlook.forecast, explained_board, width=width)]
        if has_totals:
            lines += ["", *totals(outlook.run(), width=width, each=each)]
        print("\n".join(lines))
    if not outlook.forecast.can_train:
        raise FleetError(
            f"no board that is asked in round {number} can train; a run would have no update to "
            "merge. Raise the limits that the boards name, or choose other boards"
        )


def shown(
    outlook: Outlook, name: str, *, width: int, each: bool = False, has_totals: bool = False
) -> list[str]:
    """The table under its heading, and what to know about it."""
    presence = presence_notes(outlook.fleet, outlook.forecast, with_totals=has_totals)
    return [
        *(line for text in _heading(outlook, name) for line in textwrap.wrap(text, width)),
        "",
        *table(outlook.forecast, width=width, each=each),
        "",
        *notes(outlook.forecast, width=width, each=each),
        *(line for text in presence for line in textwrap.wrap(text, width)),
    ]


def _outlook(asked: request.Request, examples: int | None, number: int) -> Outlook:
    settings = asked.strategy_here
    if number > settings.rounds:
        raise ConfigError(
            f"--round: expected at most {settings.rounds}, the rounds of the run, got {number}; "
            f"name an earlier one, or plan a longer run with --set rounds={number}"
        )
    fleet = fleet_from_text(asked.fleet_text, "fleet.toml")
    layout = layout_of(settings)
    held = (
        examples_of(settings, asked.clients, asked.data_dir or None)
        if examples is None
        else (examples,) * asked.clients
    )
    planned = forecast(settings, layout, fleet, held, number=number)
    return Outlook(settings, fleet, held, examples is None, planned)


def _heading(outlook: Outlook, name: str) -> Sequence[str]:
    settings, held = outlook.settings, outlook.examples
    least, most = min(held), max(held)
    spread = f"{least}" if least == most else f"{least} to {most}"
    source = "as the task's data is divided" if outlook.are_counted else "as --examples says"
    return (
        (
            f"{name} on fleet {settings.fleet}: round {outlook.forecast.number} of "
            f"{settings.rounds}, seed {settings.seed}, task {settings.task}"
        ),
        f"{len(held)} board{'' if len(held) == 1 else 's'} with {spread} examples each, {source}",
    )
