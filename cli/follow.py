"""Following a submitted run to its end, from the files that its server writes.

Two witnesses must agree before a run counts as finished: the server's ``status.json`` and
Flower's own state. Either may be silent when the other process was killed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cli.flower import Flower, LogStream
from cli.progress import last_words, round_line
from cli.rounds import Record, read_rounds
from fedfreeze import errors
from fedfreeze.errors import RunError
from fedfreeze.run_folder import RunFailure, RunFolder
from fedfreeze.wall_clock import SystemClock, WallClock

Say = Callable[[str], None]

_LOOK_S = 0.2
_ASK_S = 10.0
_END_S = 60.0
_REST_S = 5.0
# The server writes how it ended before its process ends: what is read so much later is its last.
_GONE_S = 2.0


@dataclass(frozen=True)
class Submitted:
    """A run that was handed to Flower.

    Attributes:
        run_id: Flower's number for it.
        folder: where its server writes.
        log: the copy of its log that goes to ``folder.flower_log``.
        problem: says why no run can go on, or None; see :meth:`cli.superlink.SuperLink.problem`.
        server_app_is_gone: see :meth:`cli.superlink.SuperLink.server_app_is_gone`.
    """

    run_id: str
    folder: RunFolder
    log: LogStream
    problem: Callable[[], str | None]
    server_app_is_gone: Callable[[], bool]


def follow(
    run: Submitted, flower: Flower, say: Say, clock: WallClock | None = None
) -> RunFailure | None:
    """Say each round as it ends, until the run is over.

    Returns:
        None for a run that finished, else why it failed.
    """
    clock = clock or SystemClock()
    rounds = _Rounds(run.folder, say)
    asked_s = clock.now()
    over_since_s: float | None = None
    gone_since_s: float | None = None
    started = False
    while True:
        rounds.say_new()
        status = run.folder.read_status()
        if status is not None and not started:
            started = True
            say("starting Ray and its workers; the first round follows in about ten seconds")
        now_s = clock.now()
        if status is not None and status.state != "running" and over_since_s is None:
            over_since_s = now_s
        if status is not None and _says_all(status.error):
            run.log.close(1.0)
            return status.error
        if problem := run.problem():
            return _failure(run, problem)
        if gone_since_s is None and over_since_s is None and run.server_app_is_gone():
            gone_since_s = now_s
        lost = over_since_s is None and gone_since_s is not None and now_s - gone_since_s >= _GONE_S
        # Asking costs a second of processor time, so ask when something has happened, or rarely.
        if run.log.has_ended() or over_since_s is not None or lost or now_s - asked_s >= _ASK_S:
            state = flower.state(run.run_id)
            asked_s = clock.now()
            if state.is_over:
                run.log.close(_REST_S)
                rounds.say_new()
                return _verdict(run, completed=state.is_completed, details=state.details)
            if lost:
                return _failure(
                    run,
                    "the process of the server app (flwr-simulation) ended without a word: "
                    "it was killed, by a person or for want of memory",
                )
            if over_since_s is not None and asked_s - over_since_s > _END_S:
                return _failure(
                    run,
                    f"the server has ended, but Flower still says {state.status!r} "
                    f"after {_END_S:.0f} s",
                )
            if run.log.has_ended() or over_since_s is not None:
                clock.sleep(1.0)
        clock.sleep(_LOOK_S)


class _Rounds:
    """The rounds of one folder, each said once; those of an earlier part of the run are not."""

    def __init__(self, folder: RunFolder, say: Say) -> None:
        self._folder = folder
        self._say = say
        self._signature = self._look()
        self._said = len(read_rounds(folder.rounds))
        self._sitting_out: set[str] = set()

    def say_new(self) -> None:
        signature = self._look()
        if signature == self._signature:
            return
        self._signature = signature
        records: list[Record] = read_rounds(self._folder.rounds)
        # A resumed server drops the rounds after its checkpoint, and does them again.
        self._said = min(self._said, len(records))
        for record in records[self._said :]:
            self._say(round_line(record))
            self._say_who_sits_out(record)
        self._said = len(records)

    def _say_who_sits_out(self, record: Record) -> None:
        """Once for each board: it is for want of something that it will lack in later rounds."""
        given = record.get("sat_out")
        reasons = given if isinstance(given, dict) else {}
        for board in sorted(set(reasons) - self._sitting_out):
            self._sitting_out.add(board)
            self._say(f"  {board} sits out: {reasons[board]}")

    def _look(self) -> tuple[int, int, int] | None:
        try:
            stat = self._folder.rounds.stat()
        except FileNotFoundError:
            return None
        return (stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _says_all(error: RunFailure | None) -> bool:
    """Whether the server failed on purpose: then no traceback is worth waiting for Ray to end."""
    kind = getattr(errors, error.type, None) if error is not None else None
    return isinstance(kind, type) and issubclass(kind, errors.FedFreezeError)


def _verdict(run: Submitted, *, completed: bool, details: str) -> RunFailure | None:
    status = run.folder.read_status()
    if completed and status is not None and status.state == "finished":
        return None
    if completed:
        return _failure(run, "Flower says that the run completed, but its server did not say so")
    return _failure(run, details or "Flower says that the run failed")


def _failure(run: Submitted, otherwise: str) -> RunFailure:
    """What the server said, else what can be known from outside and the log's last lines."""
    run.log.close(_REST_S)
    status = run.folder.read_status()
    if status is not None and status.error is not None:
        return status.error
    words = []
    if run.folder.flower_log.is_file():
        log = run.folder.flower_log.read_text(encoding="utf-8", errors="replace")
        known = set(otherwise.splitlines())  # Flower's details may end with the same traceback
        words = [line for line in last_words(log) if line not in known]
    return RunFailure("RunError", "\n".join([otherwise, *words]), RunError.exit_code)
