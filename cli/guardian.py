"""A small process that outlives ``fedfreeze run`` by a moment and cleans up after its death.

It reads a pipe that nobody writes to. The pipe ends when the command ends, however that comes
about; then whatever is left of the private SuperLink and of Ray is ended and deleted.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cli
from cli.workspace import remove

_PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from cli.guardian import watch
watch(Path(sys.argv[2]))
"""


class Guardian:
    """Watches over the processes that a record names, until dismissed.

    Args:
        record_folder: as :func:`cli.workspace.record_folder` gives it.
    """

    def __init__(self, record_folder: Path) -> None:
        root = Path(cli.__file__).parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(root), str(record_folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Let it look for leftovers once, and end."""
        self._process.communicate(timeout=30)


def watch(record_folder: Path) -> None:
    """Wait for the end of standard input, then remove what the record names."""
    while sys.stdin.buffer.read(1024):
        pass
    remove(record_folder, grace_s=2)
