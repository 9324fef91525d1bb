"""``fedfreeze run``: simulate a fleet from one command, and say what came out of it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import request
from cli.follow import Say
from cli.interrupt import EXIT_CODE, stoppable
from cli.predictions import prediction_lines, predictions_of
from cli.preflight import preflight
from cli.progress import summary_lines
from cli.request import Request
from cli.rounds import figures, read_rounds
from cli.simulation import default_workers, simulate
from cli.workspace import read_record, record_folder
from fedfreeze import plain_json
from fedfreeze.errors import ConfigError, FedFreezeError, StateError
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
    data_dir: Annotated[
        str | None, typer.Option(help="Folder with data sets (else $FEDFREEZE_DATA_DIR).")
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
    say = _printer(sys.stderr if as_json else sys.stdout)
    if resume is None:
        asked = request.new(
            strategy,
            fleet,
            overrides or [],
            seed=seed,
            rounds=rounds,
            clients=clients,
            data_dir=data_dir,
        )
        folder = new_run_folder(asked.stem, name=name)
        say("checking the task, its layers and its data")
        try:
            preflight(asked.strategy_here, asked.clients, asked.data_dir or None)
        except BaseException:
            folder.path.rmdir()  # so that its name can be used again
            raise
    else:
        given = {"--fleet": fleet, "--set": overrides, "--seed": seed, "--name": name}
        given["--data-dir"] = data_dir
        folder = find_run(resume)
        refuse_other_options({**given, "--clients": clients}, strategy)
        asked = resumable(folder, rounds)
    boards_at_once = workers or default_workers(asked.clients)
    attend(lambda: simulate(asked, folder, boards_at_once, say), folder, say, as_json=as_json)


def attend(
    work: Callable[[], RunFailure | None], folder: RunFolder, say: Say, *, as_json: bool
) -> None:
    """Do the work, and say how it ended.

    Args:
        work: as :func:`cli.simulation.simulate`.
        folder: that the work writes.
        say: takes lines for a person.
        as_json: print one JSON object at the end, however the work ended.

    Raises:
        Exit: the run failed, or was stopped.
        FedFreezeError: it could not be started.
    """
    begin_s = time.monotonic()
    failure, stopped = None, False
    try:
        with stoppable():
            failure = work()
    except KeyboardInterrupt:
        stopped = True
        say(stopped_line(folder))
    except FedFreezeError as error:
        if as_json:
            failure = RunFailure.of(error)
            print(plain_json.text(outcome(folder, failure, time.monotonic() - begin_s)))
        raise
    elapsed_s = time.monotonic() - begin_s
    if as_json:
        print(plain_json.text(outcome(folder, failure, elapsed_s, stopped=stopped)))
    elif failure is None and not stopped:
        run_figures = figures(read_rounds(folder.rounds))
        predicted = prediction_lines(_predictions(folder))
        for line in ["", *summary_lines(run_figures, elapsed_s, files(folder), predicted)]:
            say(line)
    if stopped:
        raise typer.Exit(EXIT_CODE)
    if failure is not None:
        print(f"{failure.message}\nThe run failed. Its log: {folder.flower_log}", file=sys.stderr)
        raise typer.Exit(failure.exit_code)


def stopped_line(folder: RunFolder) -> str:
    """What to say of a run that was stopped: all may have been done already."""
    if has_finished(folder):
        return f"stopped, but the run is finished: {folder.path}"
    done = _figures(folder).get("rounds", "?")
    return f"stopped after {done} rounds; go on with: fedfreeze run --resume {folder.name}"


def has_finished(folder: RunFolder) -> bool:
    """Whether the run's server said that it did all its rounds."""
    with contextlib.suppress(StateError):
        status = folder.read_status()
        return status is not None and status.state == "finished"
    return False


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


def outcome(
    folder: RunFolder, failure: RunFailure | None, elapsed_s: float, *, stopped: bool = False
) -> dict[str, Any]:
    """The end of a run for programs; an unknown figure is absent.

    Args:
        folder: of the run.
        failure: why it failed, if it did.
        elapsed_s: measured seconds of this command.
        stopped: it was interrupted; its state is "stopped" unless all had been done by then.
    """
    state = "failed" if failure is not None else "finished"
    if stopped and not has_finished(folder):
        state = "stopped"
    values: dict[str, Any] = {
        "success": state == "finished",
        "state": state,
        "name": folder.name,
        **_figures(folder),
        "predictions": _predictions(folder) or None,
        "elapsed_s": round(elapsed_s, 3),
        "files": {word: str(path) for word, path in files(folder).items()},
        "error": None if failure is None else vars(failure),
    }
    return {key: value for key, value in values.items() if value is not None}


def _figures(folder: RunFolder) -> dict[str, Any]:
    """The figures of a run by name; none where its rounds cannot be read."""
    try:
        run = figures(read_rounds(folder.rounds))
    except StateError:
        return {}
    return {
        "rounds": run.rounds,
        f"final_{run.metric}": run.score,
        "final_worst_tenth": run.worst_tenth,
        "upload_bytes": run.upload_bytes,
        "dense_upload_bytes": run.dense_upload_bytes,
        "upload_ratio": run.upload_ratio,
        "download_bytes": run.download_bytes,
        "dense_download_bytes": run.dense_download_bytes,
        "traffic_ratio": run.traffic_ratio,
        "simulated_s": run.simulated_s,
        "modelled_energy_total_j": run.modelled_energy_total_j,
    }


def _predictions(folder: RunFolder) -> dict[str, dict[str, float]]:
    """How far predictions were off; nothing where the run's state cannot be read."""
    with contextlib.suppress(StateError):
        status = folder.read_status()
        return predictions_of(None if status is None else status.summary)
    return {}


def _printer(stream: Any) -> Say:
    def say(line: str) -> None:
        print(line, file=stream, flush=True)

    return say
