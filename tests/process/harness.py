"""What the process tests share: the command as a person starts it, and a look at what is left."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent.parent


class Command:
    """``fedfreeze`` as a person starts it, with a home of its own."""

    def __init__(self, home):
        self.home = home
        self._env = {**os.environ, "FEDFREEZE_HOME": str(home), "PYTHONPATH": str(ROOT)}

    def start(self, *arguments, prefix=()):
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "cli", *arguments],
            cwd=self.home.parent,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, *arguments):
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=240)
        return process.returncode, out, err

    def json(self, *arguments):
        code, out, err = self.finish(*arguments, "--json")
        return code, json.loads(out) if out else None, err

    def record(self, run):
        return json.loads((self.home / "flower" / run / "process.json").read_text())


def left_of(marker, workspace):
    """Processes that carry a run's mark or work in its folder, seen without the project's code."""
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = " ".join(process.cmdline())
            if process.environ().get("FEDFREEZE_RUN_ID") == marker or workspace in words:
                left.append((process.pid, words))
    return left
