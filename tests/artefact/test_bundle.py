"""What Flower packs is what boards run, and Flower drops files without a word: test the bundle."""

import io
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from flwr.cli.build import build_fab_from_disk

from cli import bundle
from fedfreeze.code_digest import ROOMS
from fedfreeze.errors import RunError

ROOT = Path(__file__).parent.parent.parent
FLOWERS_LIMIT_BYTES = 10 * 1024 * 1024

# flwr 1.42 asks pathspec for a name that newer ones deprecate; drop this with the next flwr.
pytestmark = pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")

_IMPORT = """\
import sys
from pathlib import Path
root = Path(sys.argv[1])
sys.path.insert(0, str(root))
import client_app.app, server_app.app
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
assert isinstance(server_app.app.app, ServerApp)
assert isinstance(client_app.app.app, ClientApp)
for room in sys.argv[2:]:
    folder = Path(__import__(room).__file__).parent
    assert folder == root / room, f"{room} came from {folder}"
from fedfreeze.code_digest import code_digest
from strategies.schema import load, presets
from device_profiles.board import boards
from device_profiles.fleet import fleets, load_fleet
from tasks.loading import load as load_task
for name in presets():
    load(name)
for name in fleets():
    load_fleet(name)
print(code_digest(), len(presets()), len(fleets()), len(boards()))
"""


def unpack(content, target):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(target)
    return target


@pytest.fixture(scope="module")
def built():
    return build_fab_from_disk(ROOT)


@pytest.fixture(scope="module")
def from_checkout(built, tmp_path_factory):
    return unpack(built, tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def from_stage(tmp_path_factory):
    staged = bundle.stage(tmp_path_factory.mktemp("stage"))
    return unpack(build_fab_from_disk(staged), tmp_path_factory.mktemp("staged"))


@pytest.fixture(params=["from_checkout", "from_stage"])
def unpacked(request):
    return request.getfixturevalue(request.param)


def files_of(folder):
    return {
        path.relative_to(folder).as_posix()
        for room in ROOMS
        for path in (folder / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_of_every_room_is_in_the_bundle(unpacked):
    assert files_of(unpacked) == files_of(ROOT)


def test_the_bundle_holds_nothing_but_the_rooms_and_flowers_own_files(unpacked):
    assert {path.name for path in unpacked.iterdir()} == {*ROOMS, "pyproject.toml", ".info"}


def test_files_arrive_byte_for_byte(unpacked):
    for name in files_of(ROOT):
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes(), name


def test_the_bundle_leaves_room_below_flowers_limit(built):
    assert len(built) < FLOWERS_LIMIT_BYTES // 2


def test_both_apps_import_from_the_unpacked_bundle_alone(from_checkout, tmp_path):
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _IMPORT, str(from_checkout), *ROOMS],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    digest, *counts = done.stdout.split()
    code = subprocess.run(
        [sys.executable, "-c", "from fedfreeze.code_digest import *; print(code_digest())"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert digest == code.stdout.strip()
    assert all(int(count) > 0 for count in counts)


def test_the_staged_project_file_says_what_the_checkouts_own_says():
    own = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    app = own["tool"]["flwr"]["app"]
    staged = bundle.project()
    assert staged["tool"]["flwr"]["app"]["config"] == app["config"]
    assert staged["tool"]["flwr"]["app"]["components"] == app["components"]
    assert staged["tool"]["flwr"]["app"]["publisher"] == app["publisher"]
    assert staged["project"]["name"] == own["project"]["name"]


def test_the_app_is_staged_from_wherever_the_package_stands(tmp_path):
    installed, staged = tmp_path / "site-packages", tmp_path / "staged"
    for room in (*ROOMS, "cli"):
        shutil.copytree(ROOT / room, installed / room)
    staged.mkdir()
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from cli import bundle; bundle.stage(Path(sys.argv[2]))"
    )
    (installed / "fedfreeze" / "only_here.py").touch()
    subprocess.run(
        [sys.executable, "-P", "-c", program, str(installed), str(staged)],
        cwd=tmp_path,
        check=True,
    )
    assert files_of(staged) == files_of(ROOT) | {"fedfreeze/only_here.py"}


def test_a_room_that_is_not_there_is_named(tmp_path):
    (tmp_path / "fedfreeze").mkdir()
    (tmp_path / "target").mkdir()
    with pytest.raises(RunError) as caught:
        bundle.stage(tmp_path / "target", root=tmp_path)
    assert str(caught.value) == (
        f"expected the package fedfreeze in {tmp_path}, found none; install fedfreeze again"
    )
