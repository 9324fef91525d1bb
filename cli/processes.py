"""Finding and ending every process of one private SuperLink.

Flower and Ray start sessions of their own, and Ray's workers rewrite their command line, so
neither a process group nor a name finds them all. A marker in the environment does: each child
inherits it. Two Ray agents overwrite their environment too; they share a session with marked ones.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection

import psutil

MARKER = "FEDFREEZE_RUN_ID"

_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError)


def family(marker: str) -> list[psutil.Process]:
    """Live processes that carry ``marker``, their descendants, and whoever shares their sessions.

    The calling process and its ancestors are never part of it.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    own_session = os.getsid(0)
    everyone = {process.pid: process for process in psutil.process_iter()}
    found = {pid for pid, process in everyone.items() if _carries(process, marker)}
    for pid in tuple(found):
        with contextlib.suppress(*_GONE):
            found |= {child.pid for child in everyone[pid].children(recursive=True)}
    sessions = {_session(pid) for pid in found} - {None, own_session}
    found |= {pid for pid in everyone if _session(pid) in sessions}
    members = [everyone[pid] for pid in sorted(found - own) if pid in everyone]
    return [process for process in members if not has_ended(process)]


def end(marker: str, *, grace_s: float) -> int:
    """End the family: SIGTERM, then SIGKILL after ``grace_s``; returns how many there were.

    It looks again after killing, because a process may have started another in between.
    """
    ended: set[int] = set()
    members = family(marker)
    if grace_s > 0:
        _signal(members, kill=False)
        _await_end(members, grace_s)
        ended |= {process.pid for process in members}
        members = family(marker)
    for _ in range(10):
        if not members:
            break
        ended |= {process.pid for process in members}
        _signal(members, kill=True)
        _await_end(members, 2.0)
        members = family(marker)
    return len(ended)


def is_alive(pid: int, created_at_s: float) -> bool:
    """Whether the very process that had this id then still runs; ids are used again."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - created_at_s) < 1 and not has_ended(process)
    except _GONE:
        return False


def has_ended(process: psutil.Process) -> bool:
    """Whether the process has ended, reaped or not."""
    try:
        return not process.is_running() or bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def live_child(pid: int, program: str) -> psutil.Process | None:
    """The live child of ``pid`` that runs ``program`` (a word of its command line), or None."""
    try:
        children = psutil.Process(pid).children()
    except _GONE:
        return None
    for child in children:
        with contextlib.suppress(*_GONE):
            if not has_ended(child) and any(program in word for word in child.cmdline()):
                return child
    return None


def created_at_s(pid: int) -> float:
    """When the process started, seconds since the epoch."""
    return float(psutil.Process(pid).create_time())


def _carries(process: psutil.Process, marker: str) -> bool:
    try:
        return bool(process.environ().get(MARKER) == marker)
    except _GONE:
        return False


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _await_end(members: Collection[psutil.Process], timeout_s: float) -> None:
    """Wait until none runs. Zombies count as ended: whoever started them may reap them late."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        if all(has_ended(process) for process in members):
            return
        time.sleep(0.02)


def _signal(members: Collection[psutil.Process], *, kill: bool) -> None:
    for process in members:
        with contextlib.suppress(*_GONE):
            if kill:
                process.kill()
            else:
                process.terminate()
