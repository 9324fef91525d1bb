"""``fedfreeze init``: write a strategy TOML to start from."""

from __future__ import annotations

import pathlib
from typing import Annotated

import typer

from fedfreeze.errors import ConfigError
from strategies.schema import presets, read_text
from strategies.template import template


def init(
    file: Annotated[
        pathlib.Path, typer.Argument(metavar="[FILE]", show_default=False)
    ] = pathlib.Path("strategy.toml"),
    *,
    preset: Annotated[
        str | None, typer.Option(help="Start from this preset instead of from the defaults.")
    ] = None,
) -> None:
    """Write a strategy TOML with every key, its default and what it means; or a preset's.

    FILE must not exist yet; without it the file is strategy.toml.

    Example: fedfreeze init mine.toml --preset fedfreeze
    """
    text = template(str(file)) if preset is None else _of_preset(preset, file)
    try:
        with file.open("x", encoding="utf-8") as handle:
            handle.write(text)
    except FileExistsError as error:
        raise ConfigError(
            f"{file} exists and was left as it is; give another name, as in "
            f"`fedfreeze init {file.with_stem(file.stem + '-2')}`"
        ) from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from error
    print(f"Wrote {file}. Edit it, then: fedfreeze check {file}")


def _of_preset(name: str, file: pathlib.Path) -> str:
    """The preset's own text, with the command in its first line naming the new file."""
    if name not in presets():
        raise ConfigError(f'no preset "{name}"; the presets are {", ".join(presets())}')
    return read_text(name).replace(f"--strategy {name}", f"--strategy {file}", 1)
