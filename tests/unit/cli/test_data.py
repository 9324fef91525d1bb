"""``fedfreeze data``: the list of tasks, and a division in numbers, bars and a picture."""

import functools
import hashlib
import http.server
import json
import threading
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rich.console import Console

from cli import data, task_list
from cli.command_line import exit_code
from cli.division import Division, divide, partition_words, sentences, values
from strategies.schema import load as load_strategy
from tasks.dataset import Dataset, Examples
from tasks.loading import load
from tasks.partition import Split
from tasks.registry import OWNERS, TASKS

FASHION = load("fashion-cnn")


@pytest.fixture(autouse=True)
def _nobody_named_a_folder(monkeypatch):
    monkeypatch.delenv("FEDFREEZE_DATA_DIR", raising=False)


def made_up(**changes):
    given = {
        "task": "made-up",
        "source": "random numbers",
        "partition": "iid",
        "seed": 3,
        "labels": ("cat", "dog"),
        "has_classes": True,
        "owner": "",
        "held": np.array([[6, 0], [1, 1]]),
        "owners": None,
        "validation": 2,
        "test": 5,
        "test_majority": 0.6,
    }
    return Division(**{**given, **changes})


# ---- the command


def test_json_holds_the_division_that_a_run_would_train_on(capsys):
    assert exit_code(["data", "fashion-cnn", "--clients", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    parts = FASHION.division(4, Split("dirichlet", 0.3, 0.1, 0), None)
    targets = FASHION.dataset(None).train.targets.numpy()
    assert [client["by_class"] for client in found["clients"]] == [
        np.bincount(targets[part], minlength=10).tolist() for part in parts
    ]
    assert found["partition"] == "dirichlet (alpha 0.3)"
    assert (found["train_examples"], found["validation_examples"], found["test_examples"]) == (
        2700,
        300,
        600,
    )
    assert found["test_majority_share"] == 0.1
    assert found["labels"] == list(FASHION.labels)
    assert found["source"] == FASHION.dataset(None).source
    assert "owner" not in found


def test_the_number_of_clients_is_the_fleets_unless_given(capsys):
    fleet = ["--set", 'fleet="low"']
    assert exit_code(["data", "fashion-cnn", *fleet, "--json"]) == 0
    from_fleet = json.loads(capsys.readouterr().out)
    from cli.request import read_fleet

    assert len(from_fleet["clients"]) == read_fleet("low")[1].size


def test_a_person_sees_a_bar_a_client_and_what_the_letters_mean(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert exit_code(["data", "fashion-cnn", "--clients", "3", "--set", "data.partition=iid"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "2700 examples on 3 clients by iid, seed 0"
    assert lines[2] == "300 examples for validation, 600 for the test"
    assert [line.split()[::3] for line in lines[4:7]] == [
        ["client", "900"],
        ["client", "900"],
        ["client", "900"],
    ]
    assert "a t-shirt  b trouser" in lines[8]
    assert max(map(len, lines)) <= 100


def test_a_picture_is_written_where_it_was_asked_for(tmp_path, capsys):
    path = tmp_path / "division.svg"
    assert exit_code(["data", "fashion-cnn", "--clients", "3", "--svg", str(path)]) == 0
    root = ET.parse(path).getroot()
    assert root.findtext("{http://www.w3.org/2000/svg}title") == (
        "fashion-cnn: dirichlet (alpha 0.3), seed 0"
    )


def test_a_picture_that_cannot_be_written_is_said(tmp_path, capsys):
    path = tmp_path / "none" / "division.svg"
    assert exit_code(["data", "fashion-cnn", "--svg", str(path)]) == 3
    assert capsys.readouterr().err == (
        f"--svg: expected a file that can be written, {path} cannot: No such file or directory\n"
    )


def test_an_unknown_task_is_answered_with_the_tasks(capsys):
    assert exit_code(["data", "fashion-cn"]) == 3
    assert 'did you mean "fashion-cnn"?' in capsys.readouterr().err


def test_a_data_folder_that_is_none_is_refused(tmp_path, capsys):
    path = tmp_path / "none"
    assert exit_code(["data", "fashion-cnn", "--data-dir", str(path)]) == 3
    assert capsys.readouterr().err == f'--data-dir: expected a folder, "{path}" is none\n'


def test_options_that_need_a_task_say_so(capsys):
    assert exit_code(["data", "--clients", "3", "--set", "seed=1", "--download"]) == 3
    assert capsys.readouterr().err == (
        "--clients, --set, --download: expected a TASK, as in: "
        "fedfreeze data fashion-cnn --clients\n"
    )


OWN_TASK = """
from dataclasses import replace
from tasks.catalogue.fashion_cnn import task as fashion

task = replace(fashion, name="mine")
"""


def test_a_task_file_of_the_users_own_is_shown_too(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(OWN_TASK)
    monkeypatch.chdir(tmp_path)
    assert exit_code(["data", "mine.py", "--clients", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "mine"


def test_a_task_file_is_looked_for_beside_the_strategy(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(OWN_TASK)
    strategy = tmp_path / "s.toml"
    strategy.write_text('version = 1\nrounds = 1\ntask = "fashion-cnn"\n')
    shown = ["data", "mine.py", "--strategy", str(strategy), "--clients", "2", "--json"]
    assert exit_code(shown) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "mine"


# ---- downloads


def test_a_download_needs_a_folder(capsys):
    assert exit_code(["data", "fashion-cnn", "--download"]) == 3
    assert capsys.readouterr().err == (
        "--download: expected --data-dir, the folder to fetch into; nothing was fetched\n"
    )


def test_a_task_without_published_files_says_where_to_look(tmp_path, capsys):
    (tmp_path / "nothing_to_fetch.py").write_text("")
    assert exit_code(["data", "tests.tiny_task", "--download", "--data-dir", str(tmp_path)]) == 3
    assert capsys.readouterr().err == (
        '--download: task "tests.tiny_task" has no files that could be fetched and checked; '
        "docs/tasks.md says where its data comes from\n"
    )


PUBLISHED = b"0123456789" * 100

TASK_WITH_A_DOWNLOAD = """
from dataclasses import replace
from tasks.download import Download
from tasks.catalogue.fashion_cnn import task as fashion

downloads = (Download("{url}/a.bin", "sub/a.bin", sha256="{sha256}", bytes=1000),)


def read(place):
    assert place.find("made-up data", ["sub/a.bin"]).stat().st_size == 1000
    return fashion.dataset(None)


task = replace(fashion, name="downloaded", read=read)
"""


@pytest.fixture
def publisher(tmp_path):
    """The address of a server that has ``a.bin``."""
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "a.bin").write_bytes(PUBLISHED)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_data_is_fetched_checked_and_then_shown(publisher, tmp_path, monkeypatch, capsys):
    package = tmp_path / "modules" / "fetched_task"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    digest = hashlib.sha256(PUBLISHED).hexdigest()
    (package / "mine.py").write_text(TASK_WITH_A_DOWNLOAD.format(url=publisher, sha256=digest))
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setitem(TASKS, "fetched", "fetched_task.mine")
    folder = tmp_path / "data"
    fetching = ["data", "fetched", "--download", "--data-dir", str(folder)]
    assert exit_code([*fetching, "--clients", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    assert (folder / "sub" / "a.bin").read_bytes() == PUBLISHED
    assert json.loads(out)["task"] == "downloaded"
    assert err == "sub/a.bin: 1 kB of 1 kB\n"


# ---- the list


def test_every_task_is_listed_with_its_classes_owners_and_data(capsys):
    assert exit_code(["data", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(TASKS)
    assert all(row.get("source") or row.get("problem") for row in rows)
    fashion = next(row for row in rows if row["name"] == "fashion-cnn")
    assert fashion == {
        "name": "fashion-cnn",
        "what": "The default task: ten kinds of clothing in 28x28 grey images (Xiao et al., 2017).",
        "classes": 10,
        "owner": "",
        "source": FASHION.dataset(None).source,
    }


def test_a_task_whose_data_is_nowhere_says_why_and_hides_no_other(tmp_path):
    (row,) = task_list.listed(str(tmp_path), ["fashion-cnn"])
    assert row.source is None
    assert row.problem.startswith("data-dir: expected Fashion-MNIST in ")


def test_a_task_that_cannot_be_loaded_is_listed_with_its_problem():
    no_task, fashion = task_list.listed(None, ["tests.conftest", "fashion-cnn"])
    assert no_task.source is None
    assert 'expected tests.conftest to have an attribute "task"' in no_task.problem
    assert fashion.source is not None


def test_the_table_fits_every_task_and_says_no_where_there_is_no_data(capsys):
    rows = [
        task_list.ListedTask("one", "What it is (Who, 2017).", 3, "writer", "here.npz (9 rows)"),
        task_list.ListedTask("two", "Numbers.", 0, "", None, "nowhere"),
    ]
    Console(width=80).print(task_list.table(rows))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["task", "what", "classes", "owners", "data", "here"],
        ["one", "What", "it", "is", "3", "writer", "here.npz"],
        ["two", "Numbers.", "numbers", "-", "no"],
    ]


@pytest.mark.parametrize("name", OWNERS)
def test_the_tasks_that_are_said_to_have_owners_have_them(name):
    """Only where their data is at hand without a folder; the readers' tests see to the others."""
    from fedfreeze.errors import ConfigError
    from tasks.at_hand import at_hand

    assert name in TASKS
    task = load(name)
    try:
        at_hand(task, None)
    except ConfigError:
        pytest.skip("its data does not ship with the project")
    assert task.dataset(None).group == OWNERS[name]


# ---- what is said


def test_sentences_by_hand():
    """Client mixes (1, 0) and (1/2, 1/2), the whole (7/8, 1/8): distances 1/8 and 3/8."""
    assert sentences(made_up()) == [
        "sizes     2 to 6, median 4 examples a client; largest / smallest 3.0",
        (
            "mix       on average 25 % of a client's examples would have to be of another class "
            "for all clients to have the same mix"
        ),
        "classes   on average a client's examples spread like 1.5 of 2 equally common classes",
        'majority  always to answer "cat", the commonest class, is right for 0.600 of the test',
    ]


def test_without_classes_only_sizes_are_said():
    plain = made_up(
        labels=("examples",), has_classes=False, held=np.array([[6], [2]]), test_majority=None
    )
    assert sentences(plain) == [
        "sizes     2 to 6, median 4 examples a client; largest / smallest 3.0"
    ]
    found = values(plain)
    assert found["clients"] == [{"client": 0, "examples": 6}, {"client": 1, "examples": 2}]
    assert "labels" not in found
    assert "total_variation" not in found["skew"]


def test_owners_are_counted_by_client():
    def read(place):
        half = Examples(np_tensor([0, 1, 1, 0, 1, 1] * 5), np_tensor([0, 1, 1, 0, 1, 1] * 5))
        owners = np.array([1, 1, 2, 3, 3, 3] * 5)
        return Dataset(half, half, "made up", "person", owners, owners)

    strategy = load_strategy("fedfreeze", ["data.partition=natural"])
    found = divide(replace(FASHION, read=read), strategy, 2, None)
    assert (found.owner, found.owners) == ("person", [2, 1])
    assert [client["owners"] for client in values(found)["clients"]] == [2, 1]


def np_tensor(values):
    import torch

    return torch.tensor(values)


def test_classes_without_a_label_are_shown_by_their_number():
    def read(place):
        half = Examples(np_tensor([[0], [1], [1]] * 10), np_tensor([0, 2, 1] * 10))
        return Dataset(half, half, "made up")

    task = replace(FASHION, labels=("zero",), read=read)
    strategy = load_strategy("fedfreeze", ["data.partition=iid"])
    assert divide(task, strategy, 1, None).labels == ("zero", "1", "2")


def test_classes_may_have_any_numbers():
    def read(place):
        half = Examples(np_tensor([[0], [1], [1]] * 10), np_tensor([10**12, -1, -1] * 10))
        return Dataset(half, half, "made up")

    task = replace(FASHION, labels=(), outputs=2, read=read)
    found = divide(task, load_strategy("fedfreeze", ["data.partition=iid"]), 1, None)
    assert found.labels == ("-1", "1000000000000")
    assert found.held.sum(0).tolist() == [18, 9]
    assert found.test_majority == pytest.approx(2 / 3)


def test_a_partition_is_named_with_the_keys_that_it_reads():
    def words(*changes):
        return partition_words(load_strategy("fedfreeze", changes))

    assert words("data.partition=iid") == "iid"
    assert words("data.partition=quantity") == "quantity (quantity-alpha 1)"
    assert (
        words("data.partition=dirichlet-quantity", "data.alpha=0.1")
        == "dirichlet-quantity (alpha 0.1, quantity-alpha 1)"
    )


def drawn(division, *, height, terminal=True):
    console = Console(
        width=70, height=height, force_terminal=terminal, color_system=None, record=True, quiet=True
    )
    console.quiet = False
    with console.capture() as capture:
        data.show(division, console)
    return capture.get().splitlines()


def test_a_terminal_shows_as_many_clients_as_fit_and_a_file_all_of_them():
    many = made_up(held=np.ones((50, 2), np.int64))
    on_terminal = drawn(many, height=24)
    assert len(on_terminal) <= 24
    bars = [line for line in on_terminal if line.startswith("client")]
    assert f"and {50 - len(bars)} more clients" in on_terminal
    assert len(bars) >= 8
    in_file = drawn(many, height=24, terminal=False)
    assert sum(line.startswith("client") for line in in_file) == 50


def test_a_bar_says_how_many_owners_a_client_has():
    lines = drawn(made_up(owner="writer", owners=[12, 1]), height=40)
    assert lines[4].endswith("6, 12 writers")
    assert lines[5].endswith(" 2, 1 writer")
