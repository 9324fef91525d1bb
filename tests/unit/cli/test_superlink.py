import http.server
import socket
import threading

import pytest

from cli.superlink import environment, free_port, is_healthy, program
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
