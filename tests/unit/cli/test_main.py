import subprocess
import sys

import pytest

# Presses Ctrl-C while a module is imported that swallows whatever is raised, as some do.
PROGRAM = """\
import os, signal, sys
wanted, sys.argv = sys.argv[1], ["fedfreeze", *sys.argv[2:]]
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finger:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except BaseException:
                pass
sys.meta_path.insert(0, Finger())
from cli.main import main
main()
"""


@pytest.mark.parametrize(
    "module", ["cli.command_line", "typer", "cli.run", "device_profiles", "psutil", "pydantic"]
)
def test_ctrl_c_while_modules_are_imported_ends_quietly(module):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, module, "run", "--strategy", "no-such"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_name_that_is_no_text_is_printed_with_escapes(tmp_path):
    program = (
        "import os, sys\nfrom cli.main import main\nsys.argv = ['fedfreeze', 'runs']\nmain()\n"
    )
    (tmp_path / "runs" / "caf\udce9").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"FEDFREEZE_HOME": str(tmp_path), "PYTHONIOENCODING": "ascii", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].startswith(r"caf\udce9")
