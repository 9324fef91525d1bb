"""``fedfreeze init``: write a strategy TOML to start from."""

from __future__ import annotations

import pathlib
from typing import Annotated

import typer

from fedfreeze.errors import ConfigError
from strategies.template import template


def init(
    file: Annotated[
        pathlib.Path, typer.Argument(metavar="[FILE]", show_default=False)
    ] = pathlib.Path("strategy.toml"),
) -> None:
    """Write a strategy TOML with every key, its default and what it means.

    FILE must not exist yet; without it the file is strategy.toml.

    Example: fedfreeze init mine.toml
    """
    try:
        with file.open("x", encoding="utf-8") as handle:
            handle.write(template(str(file)))
    except FileExistsError as error:
        raise ConfigError(
            f"{file} exists and was left as it is; give another name, as in "
            f"`fedfreeze init {file.with_stem(file.stem + '-2')}`"
        ) from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from error
    print(f"Wrote {file}. Edit it, then: fedfreeze check {file}")
