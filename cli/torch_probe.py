"""What torch can do on this machine, found out in a process of its own.

A build that uses instructions which the processor lacks ends its process with SIGILL: that must be
a line of the report, not the end of the command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import client_app

_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class TorchReport:
    """How a small training step went.

    Attributes:
        state: "works", "missing" (not installed), "crashed" (ended by a signal) or "failed".
        detail: the signal's name, or what was printed last; empty where it works.
        version: of torch, where it is installed.
        cuda_build: the CUDA version that torch was built for; None for a build without.
        device: "cpu" or "cuda"; what the step ran on.
        threads: that torch computes with.
        flops_per_s: measured.
    """

    state: Literal["works", "missing", "crashed", "failed"]
    detail: str = ""
    version: str | None = None
    cuda_build: str | None = None
    device: str | None = None
    threads: int | None = None
    flops_per_s: float | None = None


def probe_torch(device: str) -> TorchReport:
    """Train one small step on "auto", "cpu" or "cuda"; takes some seconds."""
    try:
        installed = version("torch")
    except PackageNotFoundError:
        return TorchReport("missing")
    # Another app's client_app may stand in the current folder: this process's own comes first.
    root = str(Path(client_app.__file__).parent.parent)
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "client_app.benchmark", device],
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TorchReport("failed", f"no answer within {_TIMEOUT_S:g} s", installed)
    return report_of(done.returncode, done.stdout, done.stderr, installed)


def report_of(code: int, out: str, err: str, installed: str) -> TorchReport:
    """What the end of :mod:`client_app.benchmark` means.

    >>> report_of(-4, "", "", "2.14.1").detail
    'SIGILL'
    """
    if code < 0:
        return TorchReport("crashed", _signal(-code), installed)
    answer = _object(out)
    if code != 0 or answer is None:
        lines = err.strip().splitlines() or ["it printed nothing"]
        return TorchReport("failed", lines[-1][:300], installed)
    if "error" in answer:
        return TorchReport("failed", str(answer["error"]), installed)
    return TorchReport(
        "works",
        version=str(answer["torch"]),
        cuda_build=answer["cuda_build"],
        device=str(answer["device"]),
        threads=int(answer["threads"]),
        flops_per_s=float(answer["flops_per_s"]),
    )


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _object(out: str) -> dict[str, Any] | None:
    lines = out.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None
