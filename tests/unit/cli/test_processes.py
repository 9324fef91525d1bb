import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import processes

# Each prints a line when it stands, so that no test waits by the clock.
SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER
PARENT = (
    "import os, subprocess, sys\n"
    "env = {k: v for k, v in os.environ.items() if k != 'FEDFREEZE_RUN_ID'}\n"
    "child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], env=env,\n"
    "    start_new_session=sys.argv[2] == 'apart')\n"
    "child.wait()\n"
)


@contextlib.contextmanager
def started(marker, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", *arguments],
        env={**os.environ, processes.MARKER: marker},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == b"up\n"
        yield process
    finally:
        processes.end(marker, grace_s=0)
        process.kill()
        process.communicate()


@pytest.fixture
def marker(request):
    return f"{os.getpid()}-{request.node.name}"


def test_a_marked_process_is_found_and_ended(marker):
    with started(marker, SLEEPER) as process:
        assert [member.pid for member in processes.family(marker)] == [process.pid]
        assert processes.end(marker, grace_s=5) == 1
        assert processes.family(marker) == []


def test_a_process_that_ignores_the_polite_request_is_killed(marker):
    with started(marker, STUBBORN):
        assert processes.end(marker, grace_s=0.1) == 1
        assert processes.family(marker) == []


@pytest.mark.parametrize("place", ["beside", "apart"])
def test_children_that_lost_the_mark_are_found_in_any_session(marker, place):
    with started(marker, PARENT, SLEEPER, place):
        assert len(processes.family(marker)) == 2
        assert processes.end(marker, grace_s=5) == 2
        assert processes.family(marker) == []


def test_an_orphan_without_the_mark_is_found_by_its_session(marker):
    # Its parent has died, as Ray's agents see it, but a marked sibling is left.
    program = (
        "import os, subprocess, sys\n"
        "env = {k: v for k, v in os.environ.items() if k != 'FEDFREEZE_RUN_ID'}\n"
        "middle = 'import subprocess, sys; '"
        " 'subprocess.Popen([sys.executable, \"-c\", sys.argv[1]])'\n"
        "subprocess.run([sys.executable, '-c', middle, sys.argv[1]], env=env)\n"
        "import time; time.sleep(600)\n"
    )
    with started(marker, program, SLEEPER):
        assert len(processes.family(marker)) == 2
        assert processes.end(marker, grace_s=5) == 2


def test_the_caller_is_never_part_of_the_family(marker):
    script = (
        f"import os, sys; sys.path.insert(0, {str(Path.cwd())!r}); from cli import processes\n"
        "print([p.pid for p in processes.family(os.environ['FEDFREEZE_RUN_ID'])])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, processes.MARKER: marker},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_nobody_carries_a_fresh_mark(marker):
    assert processes.family(marker) == []
    assert processes.end(marker, grace_s=5) == 0


def test_a_process_is_known_by_its_id_and_its_birth(marker):
    own = os.getpid()
    born_s = processes.created_at_s(own)
    assert processes.is_alive(own, born_s)
    assert not processes.is_alive(own, born_s - 100)


def test_a_process_that_ended_is_not_alive_even_before_it_is_reaped(marker):
    with started(marker, SLEEPER) as process:
        born_s = processes.created_at_s(process.pid)
        assert processes.is_alive(process.pid, born_s)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not processes.is_alive(process.pid, born_s)


def test_a_child_is_seen_by_a_word_of_its_command_line_while_it_lives(marker):
    with started(marker, PARENT, SLEEPER, "beside") as process:
        child = processes.live_child(process.pid, "import time")
        assert child.ppid() == process.pid
        assert processes.live_child(process.pid, "flower-superexec") is None
        processes.end(marker, grace_s=5)
        assert processes.live_child(process.pid, "import time") is None
        assert processes.has_ended(child)
