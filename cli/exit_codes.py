"""Every exit code of the command line: what it means and what to do.

``docs/errors.md`` is made from it::

    python -m cli.exit_codes > docs/errors.md
"""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class ExitCode:
    """One exit code, with the names of the errors that end with it."""

    code: int
    errors: tuple[str, ...]
    meaning: str
    fix: str


OK = 0
FAILURE = 1
USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

EXIT_CODES = (
    ExitCode(OK, (), "The command did what it was asked to do.", "-"),
    ExitCode(
        FAILURE,
        ("FedFreezeError",),
        "An error that nobody foresaw; a traceback stands above it.",
        "Report it with the traceback and the output of `fedfreeze --version`.",
    ),
    ExitCode(
        USAGE,
        (),
        "The command line itself is wrong: an unknown command or option, or a missing argument.",
        "Look at `fedfreeze COMMAND --help`.",
    ),
    ExitCode(
        3,
        ("ConfigError",),
        "A strategy, fleet, board or run config is wrong, or `FEDFREEZE_HOME` cannot be used. "
        "Nothing was started.",
        "Correct what the message names; `fedfreeze check FILE` reads a strategy again.",
    ),
    ExitCode(
        4,
        ("LayoutError", "PacketError", "ProtocolError", "PlanError"),
        "What one end sent is not what the other expects, or no plan fits a board.",
        "Run the same version on the server and on every board. Where no plan fits, raise the "
        "limit that the message names or choose a smaller model.",
    ),
    ExitCode(
        5,
        ("StateError",),
        "A stored file is torn, foreign, or belongs to another run.",
        "Move the file that the message names away, or start the run under another name.",
    ),
    ExitCode(
        6,
        ("FleetError",),
        "Too few boards are online, or too few answered.",
        "Start the boards and look at their logs, or lower `clients.min-nodes` or "
        "`clients.quorum`.",
    ),
    ExitCode(
        7,
        ("RunError",),
        "A run failed, or what it needs could not be started. Or `fedfreeze doctor` found what "
        "keeps a board from training.",
        "The message names the log to read.",
    ),
    ExitCode(
        INTERRUPTED,
        (),
        "Stopped by Ctrl-C, by SIGTERM or because its terminal was closed.",
        "Start the command again; a stopped run says how to go on.",
    ),
)


def page() -> str:
    """``docs/errors.md``."""
    rows = [
        f"| {entry.code} | {', '.join(f'`{name}`' for name in entry.errors) or '-'} "
        f"| {entry.meaning} | {entry.fix} |"
        for entry in EXIT_CODES
    ]
    return "\n".join(
        [
            "# Errors and exit codes",
            "",
            "<!-- Made by `python -m cli.exit_codes > docs/errors.md`; do not edit. -->",
            "",
            (
                "Every error that the project raises on purpose is a"
                " `fedfreeze.errors.FedFreezeError`. Its message says what was expected, what came,"
                " and the likely fix. The command line prints it to standard error, without a"
                " traceback, and ends with the code below."
            ),
            "",
            "| code | errors | meaning | fix |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(page())
