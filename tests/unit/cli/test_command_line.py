import importlib
import subprocess
import sys

import pytest
import typer

from cli.command_line import COMMANDS, exit_code
from fedfreeze.errors import ConfigError, FleetError


def raising(error):
    """A program whose only command raises ``error``."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    @app.command()
    def command():
        raise error

    return app


def test_an_error_of_ours_is_printed_without_a_traceback_and_ends_with_its_code(capsys):
    assert exit_code([], raising(ConfigError(["a.toml:1: x", "a.toml:2: y"], "2 errors."))) == 3
    assert capsys.readouterr() == ("", "a.toml:1: x\na.toml:2: y\n2 errors.\n")
    assert exit_code([], raising(FleetError("1 of 2 boards"))) == 6


def test_an_unforeseen_error_shows_its_traceback_and_ends_with_1(capsys):
    assert exit_code([], raising(ZeroDivisionError("oh"))) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.endswith("ZeroDivisionError: oh\n")


def test_ctrl_c_ends_with_130(capsys):
    assert exit_code([], raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("", "")


def test_a_command_may_end_with_a_code_of_its_own():
    assert exit_code([], raising(typer.Exit(5))) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chek"], "No such command 'chek'"),
        (["check"], "Missing argument 'FILE'"),
        (["check", "full", "--jsn"], "No such option"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_says_what_is_wrong(arguments, message, capsys):
    assert exit_code(arguments) == 2
    assert message in capsys.readouterr().err


def test_the_version_names_what_bug_reports_need(capsys):
    assert exit_code(["--version"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("fedfreeze 0.1.0 (flwr 1.42.")
    assert ", torch 2." in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name, capsys):
    function = getattr(importlib.import_module(COMMANDS[name]), name.replace("-", "_"))
    assert f"fedfreeze {name}" in function.__doc__
    assert exit_code([name, "--help"]) == 0
    assert f"fedfreeze {name}" in capsys.readouterr().out


def test_the_help_lists_every_command(capsys):
    assert exit_code(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)


def test_check_init_and_policies_start_without_torch_and_flower():
    program = (
        "import sys\n"
        "from cli.command_line import exit_code\n"
        "assert exit_code(['check', 'fedfreeze', '--json']) == 0\n"
        "assert exit_code(['policies', '--json']) == 0\n"
        "import cli.init\n"
        "print(*{'torch', 'flwr', 'ray'} & set(sys.modules), file=sys.stderr, end='')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
