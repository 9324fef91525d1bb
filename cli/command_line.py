"""The ``fedfreeze`` command.

A subcommand's module is imported when it is asked for, so that ``fedfreeze check`` need not wait
for what a run imports.
"""

from __future__ import annotations

import importlib
import platform
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any

import click
import typer
from typer.core import TyperGroup

from cli import exit_codes
from cli.interrupt import exit_at_once
from fedfreeze.errors import FedFreezeError

# Subcommand to the module of this package that has a function of the same name.
COMMANDS = {
    "init": "cli.init",
    "check": "cli.check",
    "policies": "cli.policies",
    "data": "cli.data",
    "plan": "cli.plan",
    "run": "cli.run",
    "train-central": "cli.train_central",
    "doctor": "cli.doctor",
    "runs": "cli.runs",
    "clean": "cli.clean",
}


class _Subcommands(TyperGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        with exit_at_once():
            module = importlib.import_module(COMMANDS[cmd_name])
        function = getattr(module, cmd_name.replace("-", "_"))
        single = typer.Typer(add_completion=False)
        single.command(cmd_name)(function)
        command = typer.main.get_command(single)
        command.name = cmd_name
        return command


app = typer.Typer(cls=_Subcommands, add_completion=False, pretty_exceptions_enable=False)


def _print_version(asked: bool) -> None:
    if asked:
        parts = ", ".join(f"{name} {version(name)}" for name in ("flwr", "torch"))
        print(f"fedfreeze {version('fedfreeze')} ({parts}, Python {platform.python_version()})")
        raise typer.Exit


@app.callback(no_args_is_help=True)
def fedfreeze(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print versions and exit."
        ),
    ] = False,
) -> None:
    """Federated learning for boards that cannot each train the whole model.

    Start with: fedfreeze run --strategy fedfreeze
    """


def exit_code(arguments: Sequence[str], command: Any = app) -> int:
    """Run a command line; errors go to standard error and come back as an exit code.

    Args:
        arguments: without the program's name.
        command: the typer application.
    """
    try:
        result = command(args=list(arguments), prog_name="fedfreeze", standalone_mode=False)
    except FedFreezeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except click.exceptions.Abort:
        print("Stopped; nothing was done.", file=sys.stderr)
        return exit_codes.FAILURE
    except click.ClickException as error:
        error.show()
        return exit_codes.USAGE
    except Exception:  # noqa: BLE001 - the last stop: a traceback and a code, for any cause
        traceback.print_exc()
        return exit_codes.FAILURE
    # An int is the code of a typer.Exit; typer turns Ctrl-C into one of 130.
    return result if isinstance(result, int) else exit_codes.OK
