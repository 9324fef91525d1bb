"""The console script. It imports little, so that Ctrl-C ends it quietly from the first moment."""

from __future__ import annotations

import sys

from cli.interrupt import EXIT_CODE, exit_at_once


def main() -> None:
    """Run the command line of this process and exit with its code."""
    try:
        with exit_at_once():
            from cli.command_line import exit_code  # noqa: PLC0415  # this is what takes long
        # A name may hold bytes that are no text, and must not keep the others from being printed.
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are text
        code = exit_code(sys.argv[1:])
    except KeyboardInterrupt:
        code = EXIT_CODE
    sys.exit(code)
