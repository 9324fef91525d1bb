"""``fedfreeze policies``: what there is to choose from, and the keys of each choice."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedfreeze import plain_json
from fedfreeze.errors import ConfigError
from fedfreeze.toml_faults import did_you_mean
from strategies.reference import REGISTRIES, Key, keys, summary


@dataclass(frozen=True)
class Choice:
    """A policy or method as the command shows it."""

    table: str
    tag: str
    name: str
    summary: str
    keys: list[Key]


def choices() -> list[Choice]:
    """Every policy, then every method."""
    return [
        Choice(table, tag, name, summary(entry), keys(entry.Settings))
        for table, (tag, registry) in REGISTRIES.items()
        for name, entry in registry.items()
    ]


def policies(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> None:
    """List freeze policies and methods, or only NAME, with the keys that each takes.

    Example: fedfreeze policies fedfreeze
    """
    known = choices()
    chosen = [choice for choice in known if name in {None, choice.name}]
    if not chosen:
        names = [choice.name for choice in known]
        raise ConfigError(
            f'no policy or method "{name}"{did_you_mean(name, names)}',
            f"There are {', '.join(names)}.",
        )
    if as_json:
        print(plain_json.text([asdict(choice) for choice in chosen]))
        return
    console = Console()
    for choice in chosen:
        console.print(Text(f'[{choice.table}] {choice.tag} = "{choice.name}"', style="bold"))
        console.print(Text(f"  {choice.summary}"))
        table = Table("key", "values", "default", "meaning", box=None, pad_edge=True)
        for key in choice.keys:
            if key.name != choice.tag:
                cells = (key.name, key.kind, key.default or "", key.meaning)
                table.add_row(*(Text(cell) for cell in cells))
        if table.row_count:
            console.print(table)
        console.print()
