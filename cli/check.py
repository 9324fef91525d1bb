"""``fedfreeze check``: read a strategy and say everything that is wrong with it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.named_files import at_hand, data_folder
from cli.preflight import preflight
from fedfreeze import plain_json, strict_toml
from fedfreeze.errors import ConfigError, LayoutError, StateError
from strategies import schema


def check(
    strategy: Annotated[str, typer.Argument(metavar="FILE")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a key over the file; repeatable."),
    ] = None,
    data_dir: Annotated[
        str | None,
        typer.Option(help="Folder with data sets: put a few examples through the task, too."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON object.")
    ] = False,
) -> None:
    """Read a strategy, report every mistake with its line, and print it resolved.

    FILE is a strategy TOML or the name of a preset. When it reads well, its task is
    loaded and its model divided into layers, as a run would.

    Example: fedfreeze check strategy.toml --set local.epochs=2
    """
    try:
        read = schema.load(strategy, set_ or ())
        preflight(at_hand(read, strategy), None, data_folder(data_dir), with_data=bool(data_dir))
    except (ConfigError, LayoutError, StateError) as error:
        if as_json:
            problems = error.problems if isinstance(error, ConfigError) else [str(error)]
            print(plain_json.text({"valid": False, "problems": problems}))
            raise typer.Exit(error.exit_code) from error
        raise
    if as_json:
        resolved = read.model_dump(mode="json", by_alias=True, exclude_none=True)
        print(plain_json.text({"valid": True, "problems": [], "strategy": resolved}))
        return
    print(f"# {strategy} is a valid strategy. With every default it reads:\n")
    print(strict_toml.write(read), end="")
