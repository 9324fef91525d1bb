"""What the kernel and the firmware of a machine say about it, behind a seam.

Every sensor reads through here. A test hands over a root with a tree of its own and the answers of
commands; what is not there, or may not be read, is None.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

Command = Callable[[tuple[str, ...]], str | None]

_COMMAND_TIMEOUT_S = 5.0


def run_command(words: tuple[str, ...]) -> str | None:
    """What a program prints; None if it is not there, fails, or does not end within 5 s."""
    program = shutil.which(words[0])
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603  # fixed words of ours, no shell
            [program, *words[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


class SystemFiles:
    """Files below a root, and commands.

    Args:
        root: the machine's own ``/``, or a tree that a test has built.
        command: what runs ``vcgencmd``; None for nothing at all, as on a machine without it.
    """

    def __init__(self, root: Path = Path("/"), command: Command | None = run_command) -> None:
        self._root = root
        self._command = command

    def path(self, name: str) -> Path:
        """Where a file of this machine stands, by its absolute name."""
        return self._root / name.lstrip("/")

    def text(self, name: str) -> str | None:
        """The content of a file without blanks around it; None where there is nothing to read."""
        try:
            content = self.path(name).read_bytes()
        except OSError:  # not there, not allowed, or a sensor that does not answer now
            return None
        return content.decode("utf-8", errors="replace").strip("\0 \t\r\n") or None

    def whole(self, name: str) -> int | None:
        """A file that holds one whole number."""
        try:
            return int(self.text(name) or "")
        except ValueError:
            return None

    def found(self, pattern: str) -> list[str]:
        """Absolute names that match, sorted."""
        matches = self._root.glob(pattern.lstrip("/"))
        return sorted(f"/{path.relative_to(self._root).as_posix()}" for path in matches)

    def is_denied(self, name: str) -> bool:
        """Whether a file is there and this user may not read it."""
        try:
            self.path(name).read_bytes()
        except PermissionError:
            return True
        except OSError:
            return False
        return False

    def command(self, *words: str) -> str | None:
        """What a command prints."""
        return None if self._command is None else self._command(words)
