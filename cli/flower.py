"""The few commands of ``flwr`` that a run needs, behind one small interface.

``flwr run`` ends with exit code 0 whatever happens to the run: only its JSON and ``flwr list``
tell the truth.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cli.progress import last_lines
from cli.superlink import CONNECTION, program
from fedfreeze.errors import RunError

_TIMEOUT_S = 120


@dataclass(frozen=True)
class FlowerState:
    """What Flower says about a run: "pending", "running", "finished:completed" and so on."""

    status: str
    details: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the run will not change any more."""
        return self.status.startswith("finished")

    @property
    def is_completed(self) -> bool:
        """Whether the server app returned without an error."""
        return self.status == "finished:completed"


class LogStream(Protocol):
    """A copy of the run's log that grows until the run ends."""

    def has_ended(self) -> bool:
        """Whether the log is complete; Flower ends it with the run."""
        ...

    def close(self, wait_s: float) -> None:
        """Wait for the rest, then stop copying."""
        ...


class Flower(Protocol):
    """What ``fedfreeze run`` asks of Flower."""

    def submit(self, app: Path, federation: str, run_config: Path) -> str:
        """Submit the app; returns the run's id. Raises RunError when Flower refuses it."""
        ...

    def state(self, run_id: str) -> FlowerState:
        """What Flower says now. Raises RunError when the SuperLink does not answer."""
        ...

    def follow_log(self, run_id: str, path: Path) -> LogStream:
        """Append the run's log to a file from now on."""
        ...


class FlowerCommand:
    """Flower through its own command line.

    Args:
        env: the environment of a private SuperLink.
        cwd: where to run the command; Flower writes nothing there.
    """

    def __init__(self, env: Mapping[str, str], cwd: Path) -> None:
        self._env = dict(env)
        self._cwd = cwd
        self._program = program("flwr", self._env["PATH"])

    def submit(self, app: Path, federation: str, run_config: Path) -> str:
        """See :class:`Flower`."""
        answer = self._ask(
            "run",
            str(app),
            CONNECTION,
            "--federation-config",
            federation,
            "--run-config",
            str(run_config),
        )
        return str(answer["run-id"])

    def state(self, run_id: str) -> FlowerState:
        """See :class:`Flower`."""
        run = self._ask("list", CONNECTION, "--run-id", run_id)["runs"][0]
        details = run.get("status-details") or ""
        return FlowerState(run["status"], "" if details == "N/A" else details)

    def follow_log(self, run_id: str, path: Path) -> LogStream:
        """See :class:`Flower`."""
        with path.open("ab") as file:
            process = subprocess.Popen(
                [self._program, "log", run_id, CONNECTION],
                env=self._env,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return _LogProcess(process)

    def _ask(self, *arguments: str) -> dict[str, Any]:
        command = f"flwr {arguments[0]}"
        try:
            done = subprocess.run(
                [self._program, *arguments, "--format", "json"],
                env=self._env,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise RunError(
                f"expected an answer from `{command}` within {_TIMEOUT_S} s, got none"
            ) from error
        return answer_of(command, done.stdout, done.stderr)


def answer_of(command: str, printed: str, complained: str) -> dict[str, Any]:
    r"""The JSON object in what a ``flwr ... --format json`` command printed.

    Raises:
        RunError: there is none, or it says that the command failed.

    >>> answer_of("flwr run", 'a warning\n{"success": true, "run-id": "7"}', "")["run-id"]
    '7'
    """
    start = printed.find("{")
    try:
        answer = json.loads(printed[start:]) if start >= 0 else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise RunError(
            f"expected JSON from `{command}`, got: "
            f"{last_lines(complained.strip() or printed.strip(), 500)}"
        )
    if answer.get("success") is not True:
        raise RunError(f"`{command}` failed: {str(answer.get('error-message', answer)).strip()}")
    return answer


class _LogProcess:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self, wait_s: float) -> None:
        try:
            self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class FakeLog:
    """A log stream that ends when a test says so.

    Attributes:
        ended: what :meth:`has_ended` answers.
    """

    def __init__(self) -> None:
        self.ended = False

    def has_ended(self) -> bool:
        """See :class:`LogStream`."""
        return self.ended

    def close(self, wait_s: float) -> None:
        """See :class:`LogStream`."""
        del wait_s


class FakeFlower:
    """A Flower that answers from a list; its last answer stays.

    Attributes:
        asked: how often the state was asked for.
    """

    def __init__(self, *states: FlowerState) -> None:
        self._states = states
        self.asked = 0

    def submit(self, app: Path, federation: str, run_config: Path) -> str:
        """See :class:`Flower`."""
        del app, federation, run_config
        return "1"

    def state(self, run_id: str) -> FlowerState:
        """See :class:`Flower`."""
        del run_id
        self.asked += 1
        return self._states[min(self.asked, len(self._states)) - 1]

    def follow_log(self, run_id: str, path: Path) -> LogStream:
        """See :class:`Flower`."""
        del run_id
        path.touch()
        return FakeLog()
