"""A SuperLink of this run's own: private home, free port, empty working directory, no network.

Flower's own background SuperLink keeps the working directory, environment and code paths of
whoever started it first, so one app's clients may run another app's code, and nothing stops it.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from cli import processes, workspace
from cli.guardian import Guardian
from cli.progress import last_lines
from cli.workspace import Workspace
from fedfreeze.errors import RunError
from fedfreeze.run_folder import writing
from tasks.sources import VARIABLE, expanded

CONNECTION = "private"

_START_S = 60.0
_ATTEMPTS = 3
# Whatever matters is on disk already; a little lets Ray remove its shared memory by itself.
_GRACE_S = 2.0
_UNWANTED = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ray_address")


class SuperLink:
    """A running private SuperLink.

    Attributes:
        env: the environment that reaches it; also for ``flwr``.
        workspace: its folders.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], env: dict[str, str], at: Workspace
    ) -> None:
        self._process = process
        self._executor: psutil.Process | None = None
        self._server_app: psutil.Process | None = None
        self.env = env
        self.workspace = at

    def problem(self) -> str | None:
        """Why no run can go on here, or None.

        Runs stay pending for ever when the SuperExec, a child of the SuperLink, is gone.
        """
        if (code := self._process.poll()) is not None:
            return f"the SuperLink ended with exit code {code}"
        if self._executor is None:
            self._executor = processes.live_child(self._process.pid, "flower-superexec")
        elif processes.has_ended(self._executor):
            return "Flower's SuperExec, which starts the server app, has died"
        return None

    def server_app_is_gone(self) -> bool:
        """Whether the process of the server app, a child of the SuperExec, was there and has ended.

        Flower itself waits for its heartbeat to fail, which takes about a minute.
        """
        if self._server_app is not None:
            return processes.has_ended(self._server_app)
        if self._executor is not None:
            self._server_app = processes.live_child(self._executor.pid, "flwr-simulation")
        return False

    def stop(self) -> None:
        """End it with everything that it started."""
        processes.end(self.workspace.record.marker, grace_s=_GRACE_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)


@contextlib.contextmanager
def private_superlink(run_name: str) -> Iterator[SuperLink]:
    """Start a SuperLink for one run; end it, Ray and the temporary folder with the block.

    Raises:
        RunError: it did not come up; the message ends with what it printed.
    """
    at = workspace.create(run_name)
    guardian = Guardian(at.record_folder)
    try:
        superlink = _start(at)
        try:
            yield superlink
        finally:
            superlink.stop()
    finally:
        workspace.remove(at.record_folder, grace_s=0)
        guardian.dismiss()


def environment(base: Mapping[str, str], at: Workspace) -> dict[str, str]:
    """The environment of everything below a private SuperLink.

    Settings of other Flower and Ray installations and proxies are left out: the first would change
    what runs, and a proxy would be asked for 127.0.0.1.
    """
    kept = {
        name: value
        for name, value in base.items()
        if not name.startswith("FLWR_") and name.lower() not in _UNWANTED
    }
    if folder := base.get(VARIABLE):
        # The processes below stand in another folder, and would find nothing without a word.
        kept[VARIABLE] = str(expanded(folder, VARIABLE).absolute())
    return {
        **kept,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), base.get("PATH", os.defpath)]),
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",
        # One thread for each client: more would change sums, and actors share the cores already.
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "FLWR_HOME": str(at.flower_home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.05",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": str(at.path),
        processes.MARKER: at.record.marker,
    }


def free_port() -> int:
    """A port of 127.0.0.1 that nobody had a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_healthy(port: int) -> bool:
    """Whether a SuperLink answers at the port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def program(name: str, path: str) -> str:
    """The full path of one of Flower's programs.

    Raises:
        RunError: Flower is not installed beside this Python.
    """
    found = shutil.which(name, path=path)
    if found is None:
        raise RunError(
            f'expected the program "{name}" beside {sys.executable}, found none; '
            "install Flower there: pip install 'flwr[simulation]>=1.42,<1.43'"
        )
    return found


def _start(at: Workspace) -> SuperLink:
    env = environment(os.environ, at)
    command = program("flower-superlink", env["PATH"])
    for _ in range(_ATTEMPTS):
        port = free_port()
        with writing(at.path):
            (at.flower_home / "config.toml").write_text(
                f'[superlink]\ndefault = "{CONNECTION}"\n'
                f'[superlink.{CONNECTION}]\naddress = "127.0.0.1:{port}"\ninsecure = true\n',
                encoding="utf-8",
            )
            at.log.touch()
        with at.log.open("wb") as log:
            process = subprocess.Popen(
                [command, "--insecure", "--simulation", "--host", "127.0.0.1", "--port", str(port)],
                env=env,
                cwd=at.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if _answers(process, port):
            return SuperLink(process, env, at)
        # Another program may have taken the port in between: that is worth another one.
        if process.poll() is None or b"address already in use" not in at.log.read_bytes():
            break
    process.kill()
    process.wait()
    printed = last_lines(at.log.read_text(encoding="utf-8", errors="replace"), 2000)
    raise RunError(
        f"expected a SuperLink to answer at 127.0.0.1:{port} within {_START_S:.0f} s, "
        f"but none did; it printed:\n{printed}"
    )


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline_s = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        if is_healthy(port) and _listens(process.pid):
            return True
        time.sleep(0.05)
    return False


def _listens(pid: int) -> bool:
    """Whether the process itself listens, so that a stranger at a lost port is not taken for it."""
    try:
        return any(c.status == psutil.CONN_LISTEN for c in psutil.Process(pid).net_connections())
    except (psutil.Error, OSError):
        return True  # not every system tells: then the answer at the port must do
