import http.server
import socket
import subprocess
import sys
import threading

import psutil
import pytest

from cli.superlink import SuperLink, environment, free_port, is_healthy, program
from cli.workspace import Record, Workspace
from fedfreeze.errors import RunError


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "record", Record("mark", 1, 0.0, str(tmp_path / "fedfreeze-x")))


def test_no_proxy_and_no_setting_of_another_flower_or_ray_reaches_a_private_superlink(workspace):
    base = {
        "PATH": "/usr/bin",
        "HTTP_PROXY": "http://proxy",
        "https_proxy": "http://proxy",
        "FLWR_HOME": "/elsewhere",
        "FLWR_LOG_LEVEL": "DEBUG",
        "RAY_ADDRESS": "10.0.0.1:6379",
        "LANG": "C",
    }
    env = environment(base, workspace)
    assert {"HTTP_PROXY", "https_proxy", "FLWR_LOG_LEVEL", "RAY_ADDRESS"}.isdisjoint(env)
    assert env["FLWR_HOME"] == str(workspace.path / "flwr")
    assert env["LANG"] == "C"


def test_everything_below_it_stays_offline_single_threaded_and_marked(workspace):
    env = environment({}, workspace)
    assert env["FLWR_TELEMETRY_ENABLED"] == "0"
    assert env["FLWR_DISABLE_UPDATE_CHECK"] == "1"
    assert env["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"] == "1"
    assert env["RAY_USAGE_STATS_ENABLED"] == "0"
    assert env["OMP_NUM_THREADS"] == "1"
    assert env["FEDFREEZE_RUN_ID"] == "mark"


def test_a_data_folder_means_the_same_below_as_where_it_was_named(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    for named, meant in (
        ("sets", str(tmp_path / "sets")),
        ("~/sets", "/home/someone/sets"),
        ("/mnt/sets", "/mnt/sets"),
        ("", ""),
    ):
        env = environment({"FEDFREEZE_DATA_DIR": named}, workspace)
        assert env["FEDFREEZE_DATA_DIR"] == meant


def test_a_program_that_is_not_installed_is_named_with_what_to_install(tmp_path):
    with pytest.raises(
        RunError,
        match=r"^expected the program \"flwr-none\" beside .*, found none; "
        r"install Flower there: pip install 'flwr\[simulation\]>=1.42,<1.43'$",
    ):
        program("flwr-none", str(tmp_path))


def test_a_free_port_can_be_bound():
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))


def test_a_port_that_nobody_listens_on_is_not_healthy():
    assert not is_healthy(free_port())


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_health_is_what_the_port_answers(status, healthy):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert is_healthy(server.server_port) is healthy
        thread.join()


def test_a_port_that_speaks_something_else_is_not_healthy():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def babble():
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"SSH-2.0\r\n\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        assert not is_healthy(server.getsockname()[1])
        thread.join()


# Stands for the SuperLink, its SuperExec and that one's server app, by the names it is given.
CHAIN = """\
import subprocess, sys, time
program, *names = sys.argv[1:]
if len(names) > 1:
    subprocess.Popen([sys.executable, "-c", program, program, *names[1:]])
else:
    print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def chain(workspace):
    names = ("flower-superlink", "flower-superexec", "flwr-simulation")
    with subprocess.Popen(
        [sys.executable, "-c", CHAIN, CHAIN, *names], stdout=subprocess.PIPE
    ) as process:
        below = []
        try:
            assert process.stdout.readline() == b"up\n"
            below = psutil.Process(process.pid).children(recursive=True)
            yield SuperLink(process, {}, workspace), below
        finally:
            for member in (*below, process):
                member.kill()


def test_a_server_app_is_gone_once_it_was_there_and_has_ended(chain):
    superlink, (executor, server_app) = chain
    assert superlink.problem() is None
    assert not superlink.server_app_is_gone()
    assert not superlink.server_app_is_gone()
    server_app.kill()
    while server_app.status() != psutil.STATUS_ZOMBIE:
        pass
    assert superlink.server_app_is_gone()
    assert superlink.problem() is None
    assert executor.is_running()


def test_a_server_app_that_never_was_is_not_gone(chain):
    superlink, (_, server_app) = chain
    server_app.kill()
    while server_app.status() != psutil.STATUS_ZOMBIE:
        pass
    assert superlink.problem() is None
    assert not superlink.server_app_is_gone()
    assert not superlink.server_app_is_gone()


def test_a_dead_superexec_is_a_problem_as_runs_would_stay_pending(chain):
    superlink, (executor, _) = chain
    assert superlink.problem() is None
    executor.kill()
    while executor.status() != psutil.STATUS_ZOMBIE:
        pass
    assert superlink.problem() == "Flower's SuperExec, which starts the server app, has died"
