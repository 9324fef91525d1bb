"""``fedfreeze data``: which data there is, and how a strategy divides it among the clients."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cli import task_list
from cli.chosen import chosen
from cli.class_keys import class_keys
from cli.division import Division, divide, heading, sentences, values
from cli.division_bars import bars, legend
from cli.division_svg import picture
from cli.named_files import data_folder
from cli.request import read_fleet
from fedfreeze import plain_json, units
from fedfreeze.errors import ConfigError
from fedfreeze.units import Dimension
from tasks.download import Download, downloads_of, fetch
from tasks.sources import expanded

# Blank lines between the parts of the drawing, and the prompt.
_GAPS = 4


def data(
    task: Annotated[str | None, typer.Argument(metavar="[TASK]")] = None,
    *,
    clients: Annotated[
        int | None, typer.Option(min=1, help="How many to divide among (default: the fleet's).")
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="Preset or TOML file: its data table and seed.")
    ] = "fedfreeze",
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one key of the strategy."),
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(help="Folder with data sets (else $FEDFREEZE_DATA_DIR).")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="First fetch TASK's data into --data-dir.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the bars as a picture.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the tasks and where their data is, or show how TASK's is divided.

    A bar is a client: its length the number of examples, its letters their
    classes.

    Example: fedfreeze data fashion-cnn --clients 20 --set data.alpha=0.1 --svg division.svg
    """
    if task is None:
        given = {"--clients": clients, "--set": overrides, "--svg": svg}
        _refuse_without_task({**given, "--download": download or None})
        tasks = task_list.listed(data_folder(data_dir))
        if as_json:
            print(plain_json.text([_known(asdict(one)) for one in tasks]))
        else:
            console = Console(highlight=False)
            console.print(task_list.table(tasks))
            if any(one.problem for one in tasks):
                console.print("\nWhere it says no, `fedfreeze data TASK` says what is missing.")
        return
    if download:
        fetch_data(task, data_dir)
    settings, loaded = chosen(strategy, overrides or [], task=task)
    count = clients or read_fleet(settings.fleet)[1].size
    division = divide(loaded, settings, count, data_folder(data_dir))
    if svg is not None:
        write_picture(division, svg)
    if as_json:
        print(plain_json.text(values(division)))
    else:
        show(division, Console(highlight=False))


def show(division: Division, console: Console) -> None:
    """Draw it as wide and as high as the terminal is; into a file go all clients."""
    keys = class_keys(division.held, division.labels)
    sizes = division.held.sum(1).tolist()
    notes = [str(size) for size in sizes]
    if division.owners is not None:
        notes = [
            f"{size}, {count} {division.owner}{'s' if count > 1 else ''}"
            for size, count in zip(sizes, division.owners, strict=True)
        ]
    key_lines = legend(keys, width=console.width) if division.has_classes else []
    above, below = heading(division), sentences(division)
    rows = len(sizes)
    if console.is_terminal:
        others = sum(-(-len(text) // console.width) for text in (*above, *below))
        rows = max(4, console.height - others - len(key_lines) - _GAPS)
    for text in above:
        console.print(text, markup=False)
    console.print()
    for bar in bars(division.held, keys, notes, width=console.width, rows=rows):
        console.print(bar, no_wrap=True, overflow="crop")
    console.print()
    for key_line in key_lines:
        console.print(key_line)
    if key_lines:
        console.print()
    for text in below:
        console.print(text, markup=False)


def write_picture(division: Division, path: Path) -> None:
    """The bars as SVG.

    Raises:
        ConfigError: the file cannot be written.
    """
    title = f"{division.task}: {division.partition}, seed {division.seed}"
    text = picture(
        division.held,
        class_keys(division.held, division.labels),
        title=title,
        description="; ".join([*heading(division), *sentences(division)]),
    )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"--svg: expected a file that can be written, {path} cannot: {error.strerror}"
        ) from error


def fetch_data(task: str, data_dir: str | None) -> None:
    """Fetch what the task's data consists of.

    Raises:
        ConfigError: no folder was named, or nothing is known that could be fetched.
        StateError: what came is not what was published.
    """
    if data_dir is None:
        raise ConfigError(
            "--download: expected --data-dir, the folder to fetch into; nothing was fetched"
        )
    downloads = downloads_of(task)
    if not downloads:
        raise ConfigError(
            f'--download: task "{task}" has no files that could be fetched and checked; '
            "docs/tasks.md says where its data comes from"
        )
    said: set[str] = set()

    def progress(download: Download, done_bytes: int) -> None:
        if download.file not in said or done_bytes == download.bytes:
            said.add(download.file)
            done = units.written(done_bytes, Dimension.BYTES)
            whole = units.written(download.bytes, Dimension.BYTES)
            print(f"{download.file}: {done} of {whole}", file=sys.stderr, flush=True)

    fetch(downloads, expanded(data_dir, "--data-dir"), progress=progress)


def _refuse_without_task(given: dict[str, Any]) -> None:
    named = [option for option, value in given.items() if value is not None]
    if named:
        raise ConfigError(
            f"{', '.join(named)}: expected a TASK, as in: fedfreeze data fashion-cnn {named[0]}"
        )


def _known(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}
