import signal
import subprocess
import sys

import pytest

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Sends itself a signal inside the block, and says what came of it.
PROGRAM = """\
import os, signal, sys
block, number, ignored = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "ignored"
signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
if number == signal.SIGINT and not ignored:
    signal.signal(number, signal.default_int_handler)
before = signal.getsignal(number)
from cli import interrupt
try:
    with getattr(interrupt, block)():
        os.kill(os.getpid(), number)
        print("went on")
except KeyboardInterrupt:
    print("stopped")
    with getattr(interrupt, block)():
        pass
assert signal.getsignal(number) is before
"""


def outcome(block, number, how):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, block, str(int(number)), how],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_asks_a_stoppable_block_to_end(number):
    assert outcome("stoppable", number, "heeded") == (0, "stopped\n", "")


@pytest.mark.parametrize("block", ["stoppable", "exit_at_once"])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_nohup_or_a_background_job_ignores_stays_ignored(block, number):
    assert outcome(block, number, "ignored") == (0, "went on\n", "")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_block_that_has_started_nothing_without_a_word(number):
    assert outcome("exit_at_once", number, "heeded") == (130, "", "")


def test_the_second_signal_does_not_wait_for_an_orderly_end():
    program = (
        "import os, signal\n"
        "from cli.interrupt import stoppable\n"
        "with stoppable():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        print('waited', flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
