"""``fedfreeze runs``: what ran, how it ended, and what came out."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import typer

from cli.progress import figures, read_rounds
from cli.workspace import read_record, record_folder
from fedfreeze.errors import StateError
from fedfreeze.run_folder import RunFolder, RunStatus, all_runs, runs_home

# "unfinished": its server wrote no end, and no `fedfreeze run` is there that waits for one.
ListedState = Literal["running", "finished", "failed", "unfinished", "unreadable"]


@dataclass(frozen=True)
class ListedRun:
    """One run as it is listed; an unknown figure is None.

    Attributes:
        name: what ``--resume`` takes.
        state: how it stands.
        rounds_done: complete rounds.
        rounds: rounds that were asked for.
        accuracy: mean test accuracy of the last three rounds.
        upload_ratio: how many times less was sent than by dense FedAvg.
        age_s: since it last wrote something.
    """

    name: str
    state: ListedState
    rounds_done: int
    rounds: int | None
    accuracy: float | None
    upload_ratio: float | None
    age_s: float


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
        print(json.dumps(rows))
    elif listed:
        print("\n".join(table(listed)))
    else:
        print(f"No runs in {runs_home()} yet; start one with: fedfreeze run")


def describe(folder: RunFolder, now_s: float) -> ListedRun:
    """What a run's files say about it.

    Args:
        folder: of the run.
        now_s: seconds since the epoch.
    """
    written_s = max(path.stat().st_mtime for path in (folder.path, *folder.path.iterdir()))
    age_s = max(0.0, now_s - written_s)
    try:
        status = folder.read_status()
        run_figures = figures(read_rounds(folder.rounds))
    except StateError:
        return ListedRun(folder.name, "unreadable", 0, None, None, None, age_s)
    record = read_record(record_folder(folder.name))
    return ListedRun(
        name=folder.name,
        state=_state(status, attended=record is not None and record.owner_is_alive),
        rounds_done=run_figures.rounds,
        rounds=None if status is None else status.rounds,
        accuracy=run_figures.accuracy,
        upload_ratio=run_figures.upload_ratio,
        age_s=age_s,
    )


def table(listed: Sequence[ListedRun]) -> list[str]:
    """The list in columns, with a header."""
    rows = [("name", "state", "rounds", "accuracy", "uplink", "age")]
    rows += [
        (
            run.name,
            run.state,
            f"{run.rounds_done}/{'?' if run.rounds is None else run.rounds}",
            "" if run.accuracy is None else f"{run.accuracy:.3f}",
            "" if run.upload_ratio is None else f"{run.upload_ratio:.0f}x less",
            age(run.age_s),
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
