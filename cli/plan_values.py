"""A plan for programs: every number of the table, of each board; what is not known is absent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cli.layer_bar import bar
from strategies.forecast import Forecast, Planned, Prospect, Refusal
from strategies.margins import margins
from strategies.run_forecast import ASSUMPTIONS, RunForecast
from strategies.schema import Strategy


def values(settings: Strategy, fleet: str, forecast: Forecast, run: RunForecast) -> dict[str, Any]:
    """The object that ``--json`` prints.

    Args:
        settings: of the run.
        fleet: its name.
        forecast: of one round.
        run: of all rounds.
    """
    return {
        "task": settings.task,
        "fleet": fleet,
        "seed": settings.seed,
        "round": forecast.number,
        "policy_has_observed": 0,
        "layers": list(forecast.layout.names),
        "untrainable_layers": dict(forecast.untrainable),
        "boards": [_board(prospect, forecast) for prospect in forecast.prospects],
        "run": {
            "rounds": run.rounds,
            **({} if run.end is None else {"end": run.end}),
            "modelled_s": run.simulated_s,
            "modelled_upload_bytes": run.upload_bytes,
            "modelled_download_bytes": run.download_bytes,
            "modelled_energy_j": run.energy_j,
            "boards": [
                {
                    "device_id": board.device_id,
                    "profile": board.profile,
                    "rounds": board.rounds,
                    "rounds_lost": board.rounds_lost,
                    "rounds_away": board.rounds_away,
                    "modelled_busy_s": board.busy_s,
                    "modelled_upload_bytes": board.upload_bytes,
                    "modelled_download_bytes": board.download_bytes,
                    "modelled_energy_j": board.energy_j,
                }
                for board in run.boards
            ],
            "assumes": list(ASSUMPTIONS),
        },
    }


def _board(prospect: Prospect, forecast: Forecast) -> dict[str, Any]:
    known: dict[str, Any] = {
        "device_id": prospect.device_id,
        "profile": prospect.board.name,
        "asked": prospect.is_asked,
        "examples": prospect.load.examples,
        "capacity": prospect.capacity.to_json(),
        "covers": list(prospect.covers),
    }
    outcome = prospect.outcome
    if isinstance(outcome, Refusal):
        return {**known, "sits_out": asdict(outcome)}
    return {**known, **_planned(prospect, outcome, forecast)}


def _planned(prospect: Prospect, planned: Planned, forecast: Forecast) -> dict[str, Any]:
    plan = planned.plan
    costs = {name: value for name, value in asdict(planned.cost).items() if value is not None}
    return {
        "bar": bar(plan, forecast.layout),
        "trained": [name for name in forecast.layout.names if name not in plan.frozen],
        "frozen": {name: asdict(reason) for name, reason in plan.frozen.items()},
        "stages": [[stage.share, list(stage.layers)] for stage in plan.stages],
        "epochs": plan.epochs,
        "batch_size": plan.batch_size,
        "micro_batches": plan.micro_batches,
        **({} if plan.binding is None else {"binding": plan.binding}),
        "upload_budget_bytes": plan.upload_budget_bytes,
        "envelope_bytes": planned.envelope_bytes,
        **costs,
        "limits": [
            {"limit": margin.limit, "takes": margin.takes, "has": margin.has}
            for margin in margins(prospect, planned, forecast.layout, forecast.limits)
        ],
    }
