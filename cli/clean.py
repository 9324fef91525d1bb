"""``fedfreeze clean``: end what a crash left running, and delete what nobody needs any more."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cli import processes, workspace
from cli.runs import age
from cli.workspace import Record, read_record, record_folder
from fedfreeze import units
from fedfreeze.run_folder import RunFolder, all_runs, home
from fedfreeze.units import Dimension

_BUNDLES = "fedfreeze.fedfreeze.*"
_DAY_S = 86400.0
# Whoever made a folder a moment ago may be about to write into it.
_SETTLED_S = 60.0


@dataclass(frozen=True)
class Leftover:
    """Something that can go.

    Attributes:
        what: for a person to read.
        size_bytes: on disk.
        remove: lets it go.
    """

    what: str
    size_bytes: int
    remove: Callable[[], object]


def clean(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and keep it.")
    ] = False,
    runs_older_than: Annotated[
        float | None,
        typer.Option(metavar="DAYS", min=0, help="Delete runs that wrote nothing for so long."),
    ] = None,
) -> None:
    """End orphaned SuperLinks and delete what they left, old app bundles, empty and old runs.

    Example: fedfreeze clean --dry-run --runs-older-than 30
    """
    now_s = time.time()
    leftovers = [*dead_homes(now_s), *old_bundles(_flower_home()), *empty_runs(now_s)]
    if runs_older_than is not None:
        leftovers += old_runs(runs_older_than * _DAY_S, now_s)
    for leftover in leftovers:
        print(f"{leftover.what}: {units.written(leftover.size_bytes, Dimension.BYTES)}")
        if not dry_run:
            leftover.remove()
    total = units.written(sum(leftover.size_bytes for leftover in leftovers), Dimension.BYTES)
    if not leftovers:
        print("Nothing to clean.")
    else:
        print(f"{'Would free' if dry_run else 'Freed'} {total}.")


def dead_homes(now_s: float) -> Iterator[Leftover]:
    """Private Flower homes whose ``fedfreeze run`` has died, with the processes it left."""
    parent = home() / "flower"
    for folder, age_s in _by_age(parent, "*", now_s):
        record = read_record(folder)
        if record is None and age_s > _SETTLED_S:
            yield Leftover(f"unreadable record {folder}", size_bytes(folder), _tree(folder))
        elif record is not None and not record.owner_is_alive:
            yield Leftover(
                _describe(folder.name, record),
                size_bytes(folder) + size_bytes(Path(record.workspace)),
                partial(workspace.remove, folder, grace_s=5),
            )


def old_bundles(flower_home: Path) -> Iterator[Leftover]:
    """App bundles of this project that Flower unpacked and keeps, all but the latest."""
    bundles = _by_age(flower_home / "apps", _BUNDLES, time.time())
    for path, _ in bundles[:-1]:
        yield Leftover(f"old app bundle {path}", size_bytes(path), _tree(path))


def empty_runs(now_s: float) -> Iterator[Leftover]:
    """Folders of runs that ended before they wrote anything."""
    for folder, age_s in _unattended(now_s):
        with contextlib.suppress(OSError):
            if folder.is_empty and age_s > _SETTLED_S:
                yield Leftover(f"empty run {folder.name}", 0, partial(_empty, folder.path))


def old_runs(older_than_s: float, now_s: float) -> Iterator[Leftover]:
    """Runs that wrote nothing for ``older_than_s``; never one that goes on."""
    for folder, age_s in _unattended(now_s):
        if folder.holds_a_run and age_s > older_than_s:
            what = f"run {folder.name}, {age(age_s)} old"
            yield Leftover(what, size_bytes(folder.path), _tree(folder.path))


def _unattended(now_s: float) -> Iterator[tuple[RunFolder, float]]:
    """Runs that no ``fedfreeze run`` is at, each with the seconds since it wrote something."""
    for folder in all_runs():
        record = read_record(record_folder(folder.name))
        attended = record is not None and record.owner_is_alive
        if attended or folder.path.is_symlink():
            continue
        with contextlib.suppress(OSError):  # one that cannot be listed is left as it is
            yield folder, now_s - folder.written_at_s()


def _by_age(parent: Path, pattern: str, now_s: float) -> list[tuple[Path, float]]:
    """Folders that match, the oldest first, each with its age in seconds."""
    found = []
    for path in parent.glob(pattern):
        with contextlib.suppress(OSError):  # deleted since it was listed
            if path.is_dir() and not path.is_symlink():
                found.append((path.stat().st_mtime, path.name, path))
    return [(path, now_s - written_s) for written_s, _, path in sorted(found)]


def size_bytes(path: Path) -> int:
    """Bytes of the files below a folder; links are counted, not followed."""
    total = 0
    for parent, _, names in os.walk(path):
        for name in names:
            try:
                total += (Path(parent) / name).lstat().st_size
            except OSError:
                continue
    return total


def _describe(run_name: str, record: Record) -> str:
    number = len(processes.family(record.marker))
    running = f"with {number} processes that still run" if number else "no process left"
    return f"private Flower home of {run_name}, {running}"


def _flower_home() -> Path:
    return Path(os.environ.get("FLWR_HOME") or Path.home() / ".flwr").expanduser()


def _tree(path: Path) -> Callable[[], object]:
    return partial(shutil.rmtree, path, ignore_errors=True)


def _empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # something has been written there after all
        folder.rmdir()
