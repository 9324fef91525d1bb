"""``fedfreeze runs``: what ran, how it ended, and what came out."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import typer

from cli.progress import times
from cli.rounds import figures, read_rounds
from cli.workspace import read_record, record_folder
from fedfreeze import plain_json
from fedfreeze.errors import StateError
from fedfreeze.run_folder import RunFolder, RunStatus, all_runs, runs_home

# "unfinished": its server wrote no end, and no `fedfreeze run` is there that waits for one.
ListedState = Literal["running", "finished", "failed", "unfinished", "unreadable"]


@dataclass(frozen=True)
class ListedRun:
    """One run as it is listed; what is not known is None.

    Attributes:
        name: what ``--resume`` takes.
        state: how it stands.
        rounds_done: complete rounds.
        rounds: rounds that were asked for.
        metric: what its task calls its score.
        score: mean test score of the last three rounds.
        upload_ratio: how many times less was sent than by dense FedAvg.
        age_s: since it last wrote something.
        problem: why it is unreadable.
    """

    name: str
    state: ListedState
    rounds_done: int | None = None
    rounds: int | None = None
    metric: str | None = None
    score: float | None = None
    upload_ratio: float | None = None
    age_s: float | None = None
    problem: str | None = None


def runs(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List past runs, the latest first.

    Example: fedfreeze runs --json
    """
    listed = [describe(folder, time.time()) for folder in all_runs()]
    if as_json:
        rows = [
            {key: value for key, value in asdict(run).items() if value is not None}
            for run in listed
        ]
        print(plain_json.text(rows))
    elif listed:
        print("\n".join(table(listed)))
        for run in listed:
            if run.problem is not None:
                print(run.problem, file=sys.stderr)
    else:
        print(f"No runs in {runs_home()} yet; start one with: fedfreeze run")


def describe(folder: RunFolder, now_s: float) -> ListedRun:
    """What a run's files say about it; a run that cannot be read says why, and hides no other.

    Args:
        folder: of the run.
        now_s: seconds since the epoch.
    """
    try:
        age_s = max(0.0, now_s - folder.written_at_s())
    except OSError as error:
        problem = f"{folder.path}: cannot be listed: {error.strerror}"
        return ListedRun(folder.name, "unreadable", problem=problem)
    try:
        return _read(folder, age_s)
    except StateError as error:
        problem = str(error)
    except ArithmeticError as error:
        problem = f"{folder.rounds}: its figures are too large to add up: {error}"
    return ListedRun(folder.name, "unreadable", age_s=age_s, problem=problem)


def _read(folder: RunFolder, age_s: float) -> ListedRun:
    status = folder.read_status()
    run = figures(read_rounds(folder.rounds))
    record = read_record(record_folder(folder.name))
    return ListedRun(
        name=folder.name,
        state=_state(status, attended=record is not None and record.owner_is_alive),
        rounds_done=run.rounds,
        # A run that failed before its strategy was read has none.
        rounds=(status.rounds or None) if status is not None else None,
        metric=run.metric,
        score=run.score,
        upload_ratio=run.upload_ratio,
        age_s=age_s,
    )


def table(listed: Sequence[ListedRun]) -> list[str]:
    """The list in columns, with a header."""
    rows = [("name", "state", "rounds", "score", "uplink", "age")]
    rows += [
        (
            # A name with a line break or worse must not break the table.
            run.name if run.name.isprintable() else ascii(run.name)[1:-1],
            run.state,
            "" if run.rounds_done is None else f"{run.rounds_done}/{run.rounds or '?'}",
            "" if run.score is None else f"{run.metric} {run.score:.3f}",
            "" if run.upload_ratio is None else times(run.upload_ratio),
            "" if run.age_s is None else age(run.age_s),
        )
        for run in listed
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def age(seconds: float) -> str:
    """How long ago, in one unit.

    >>> age(59), age(3600 * 30), age(86400 * 9)
    ('59 s', '30 h', '9 days')
    """
    for unit, length_s, limit in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds < limit * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


def _state(status: RunStatus | None, *, attended: bool) -> ListedState:
    if attended:
        return "running"
    if status is None or status.state == "running":
        return "unfinished"
    return status.state
