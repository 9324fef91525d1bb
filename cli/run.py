"""``fedfreeze run``: simulate a fleet from one command, and say what came out of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import request
from cli.follow import Say
from cli.interrupt import EXIT_CODE
from cli.progress import figures, read_rounds, summary_lines
from cli.request import Request
from cli.simulation import default_workers, simulate
from cli.workspace import read_record, record_folder
from fedfreeze.errors import ConfigError
from fedfreeze.run_folder import RunFailure, RunFolder, find_run, new_run_folder


def run(
    *,
    strategy: Annotated[
        str, typer.Option(help="Preset or TOML file (`fedfreeze init` writes one).")
    ] = "fedfreeze",
    fleet: Annotated[
        str | None, typer.Option(help="Boards to simulate: a name or a TOML file.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one key of the strategy."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same bytes.")] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds to run; extends a resumed run.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Continue this run from its checkpoint.")
    ] = None,
    clients: Annotated[
        int | None, typer.Option(min=1, help="Boards to simulate (default: the whole fleet).")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Boards simulated at once (default: one a core).")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object at the end.")
    ] = False,
) -> None:
    """Train a strategy over simulated boards, and say what it cost.

    Example: fedfreeze run --strategy fedfreeze --fleet mixed --rounds 10 --set local.epochs=2
    """
    if resume is None:
        asked = request.new(
            strategy, fleet, overrides or [], seed=seed, rounds=rounds, clients=clients
        )
        folder = new_run_folder(asked.stem, name=name)
    else:
        given = {"--fleet": fleet, "--set": overrides, "--seed": seed, "--name": name}
        folder = find_run(resume)
        refuse_other_options({**given, "--clients": clients}, strategy)
        asked = resumable(folder, rounds)
    say = _printer(sys.stderr if as_json else sys.stdout)
    started_s = time.monotonic()
    try:
        failure = simulate(asked, folder, workers or default_workers(asked.clients), say)
    except KeyboardInterrupt:
        done = len(read_rounds(folder.rounds))
        say(f"stopped after {done} rounds; go on with: fedfreeze run --resume {folder.name}")
        raise typer.Exit(EXIT_CODE) from None
    elapsed_s = time.monotonic() - started_s
    if as_json:
        print(json.dumps(outcome(folder, failure, elapsed_s)))
    elif failure is None:
        for line in [
            "",
            *summary_lines(figures(read_rounds(folder.rounds)), elapsed_s, files(folder)),
        ]:
            say(line)
    if failure is not None:
        print(f"{failure.message}\nThe run failed. Its log: {folder.flower_log}", file=sys.stderr)
        raise typer.Exit(failure.exit_code)


def refuse_other_options(given: Mapping[str, Any], strategy: str) -> None:
    """A resumed run takes everything but its number of rounds from where it stopped.

    Raises:
        ConfigError: an option would change it.
    """
    changed = [option for option, value in given.items() if value is not None]
    if strategy != "fedfreeze":
        changed.insert(0, "--strategy")
    if changed:
        raise ConfigError(
            f"--resume continues a run as it was; leave out {', '.join(changed)} "
            "or start a new run (only --rounds and --workers may change)"
        )


def resumable(folder: RunFolder, rounds: int | None) -> Request:
    """The request of a run that stopped, asked for ``rounds`` rounds in all.

    Raises:
        ConfigError: the run goes on, or has all its rounds.
    """
    record = read_record(record_folder(folder.name))
    if record is not None and record.owner_is_alive:
        raise ConfigError(
            f'run "{folder.name}" is still running (process {record.owner_pid}); stop that first'
        )
    asked = request.saved(folder).with_rounds(rounds)
    wanted = asked.strategy.rounds
    status = folder.read_status()
    if status is not None and status.state == "finished" and status.rounds_done >= wanted:
        raise ConfigError(
            f'run "{folder.name}" has finished its {status.rounds_done} rounds; '
            f"give more to go on, such as --rounds {2 * status.rounds_done}"
        )
    return asked


def files(folder: RunFolder) -> dict[str, Path]:
    """What a run left behind, by a word for each; only what is there."""
    named = {
        "run": folder.path,
        "model": folder.model,
        "rounds": folder.rounds,
        "decisions": folder.decisions,
        "log": folder.flower_log,
    }
    return {word: path for word, path in named.items() if path.exists()}


def outcome(folder: RunFolder, failure: RunFailure | None, elapsed_s: float) -> dict[str, Any]:
    """The end of a run for programs; an unknown figure is absent."""
    run_figures = figures(read_rounds(folder.rounds))
    values = {
        "success": failure is None,
        "name": folder.name,
        "rounds": run_figures.rounds,
        "final_accuracy": run_figures.accuracy,
        "upload_bytes": run_figures.upload_bytes,
        "dense_upload_bytes": run_figures.dense_upload_bytes,
        "upload_ratio": run_figures.upload_ratio,
        "simulated_s": run_figures.simulated_s,
        "elapsed_s": round(elapsed_s, 3),
        "files": {word: str(path) for word, path in files(folder).items()},
        "error": None if failure is None else vars(failure),
    }
    return {key: value for key, value in values.items() if value is not None}


def _printer(stream: Any) -> Say:
    def say(line: str) -> None:
        print(line, file=stream, flush=True)

    return say
