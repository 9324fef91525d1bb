"""``fedfreeze plan``: its words to the letter, its errors, and that it needs no torch.

After a change that is meant, write the texts in ``plans/`` anew and read them::

    FEDFREEZE_WRITE_PLANS=1 pytest tests/unit/cli/test_plan.py
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command_line import exit_code
from cli.layer_bar import MARKS, legend
from cli.plan_inputs import examples_of
from cli.text_table import columns
from fedfreeze.layout import Layer, LayerCosts, Layout, TensorSpec
from fedfreeze.plan import ReasonCode
from strategies.schema import load
from tasks.division_cache import cached_examples
from tasks.layout_cache import cached_layout, remember

PLANS = Path(__file__).parent / "plans"
ROOT = Path(__file__).parent.parent.parent.parent

pytestmark = pytest.mark.usefixtures("home")


def layer(name, parameters, flops, kept_bytes):
    """A layer of one matrix, with costs of its own."""
    return Layer(
        name,
        (TensorSpec(f"{name}.weight", (parameters,), "float32"),),
        LayerCosts(flops, flops, flops, kept_bytes, transient_bytes=kept_bytes / 2),
    )


SIX = Layout(
    "six",
    (
        layer("stem", 80, 60e3, 60e3),
        layer("conv2", 1_200, 900e3, 60e3),
        layer("conv3", 4_600, 900e3, 30e3),
        layer("conv4", 9_200, 450e3, 15e3),
        layer("fc", 80_000, 80e3, 1e3),
        layer("head", 640, 1e3, 1e2),
    ),
)
SIXTY = Layout(
    "sixty",
    (
        layer("patches", 40_000, 40e6, 900e3),
        *(layer(f"blocks.{n}", 60_000, 30e6, 400e3) for n in range(58)),
        layer("head", 2_000, 4e3, 8e3),
    ),
)
MIXED = ["fedfreeze", "--fleet", "mixed", "--examples", "300"]
LONG = ["--set", 'model.name="vit-tiny"', "--set", 'clients.round-deadline="900 s"']


@pytest.fixture
def known(monkeypatch):
    """Two layouts that were remembered, and a terminal of 80 columns."""
    for name, layout in (("fashion-cnn", SIX), ("cifar10", SIX)):
        assert remember(name, load("fedfreeze").options, layout)
    options = load("fedfreeze", ['model.name="vit-tiny"']).options
    assert remember("fashion-cnn", options, SIXTY)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FEDFREEZE_DATA_DIR", raising=False)


def printed(arguments, capsys, code=0):
    assert exit_code(["plan", *arguments]) == code
    out, err = capsys.readouterr()
    assert code or err == ""
    return out


def as_json(arguments, capsys, code=0):
    return json.loads(printed([*arguments, "--json"], capsys, code))


# ---- its words

GOLDEN = {
    "mixed": [*MIXED, "--explain", "rpi-zero-2w", "--totals"],
    "low-each": [
        *("full", "--fleet", "low", "--examples", "150", "--clients", "4", "--seed", "5"),
        *("--each", "--rounds", "7", "--explain", "sim-0002"),
    ],
    "evening": ["fedfreeze", "--fleet", "evening", "--examples", "300", "--totals"],
    "sixty-layers": [
        *(*MIXED, *LONG, "--set", "local.batch-size=32"),
        *("--set", 'local.micro-batches="always"', "--set", "limits.energy-j-per-round=2000"),
        *("--explain", "rpi-3b-plus"),
    ],
    "a-share-later": [
        *(*MIXED, "--round", "12", "--seed", "1"),
        *("--set", "clients.selection=uniform", "--set", "clients.share=0.5"),
        *("--set", "clients.q-min=2", "--set", "limits.flops-per-round=4e9"),
    ],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_command_says_to_the_letter_what_it_said(name, known, capsys):
    came = printed(GOLDEN[name], capsys)
    path = PLANS / f"{name}.txt"
    if os.environ.get("FEDFREEZE_WRITE_PLANS"):
        path.write_text(came, encoding="utf-8")
    assert came == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GOLDEN)
def test_no_line_is_wider_than_the_terminal(name, known, capsys):
    lines = printed(GOLDEN[name], capsys).splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_long_totals_of_each_board_stand_closer_together(known, capsys):
    args = [*MIXED, "--each", "--totals", "--rounds", "20000"]
    lines = printed(args, capsys).splitlines()
    assert [line for line in lines if len(line) > 80] == []
    (wide,) = (line for line in lines if line.startswith("sim-0000") and "20000" in line)
    assert "20000    0    0" in wide  # two apart it would be "20000     0     0"


def test_a_legend_knows_every_reason():
    assert set(MARKS) == set(ReasonCode.__args__)
    assert len({*MARKS.values(), "#"}) == len(MARKS) + 1
    every = legend(["".join(MARKS.values())])
    assert all(f"{mark} " in every for mark in MARKS.values())


def test_columns_of_a_table_end_alike():
    assert columns(["", "n"], [["a", "10"], ["bcd", "7"]]) == ["      n", "a    10", "bcd   7"]


# ---- for programs


def test_rows_and_their_sums_are_in_the_json(known, capsys):
    found = as_json(MIXED, capsys)
    assert found["layers"] == list(SIX.names)
    assert [board["device_id"] for board in found["boards"]] == [f"sim-{n:04d}" for n in range(10)]
    run = found["run"]
    for key in ("modelled_upload_bytes", "modelled_download_bytes"):
        assert run[key] == sum(board[key] for board in run["boards"])
    assert run["modelled_energy_j"] == pytest.approx(
        sum(board["modelled_energy_j"] for board in run["boards"])
    )
    for board in found["boards"]:
        assert set(board["trained"]) | set(board["frozen"]) == set(SIX.names)
        assert [
            name for name, mark in zip(SIX.names, board["bar"], strict=True) if mark == "#"
        ] == (board["trained"])
        assert all(limit["takes"] <= limit["has"] for limit in board["limits"])
        assert ("binding" in board) == bool(board["frozen"])


def test_the_same_seed_says_the_same_and_another_one_something_else(known, capsys):
    first = printed([*MIXED, "--json"], capsys)
    assert printed([*MIXED, "--json"], capsys) == first
    assert printed([*MIXED, "--json", "--seed", "9"], capsys) != first


# ---- when something is wrong


def test_mistakes_end_as_those_of_check_do(known, capsys):
    assert exit_code(["plan", "fedfreeze", "--set", "rounds=0"]) == 3
    assert capsys.readouterr() == (
        "",
        "--set rounds: expected 1 or more, got 0\n1 error in --set. Nothing was started.\n",
    )
    found = as_json(["fedfreeze", "--set", "rounds=0"], capsys, code=3)
    assert found == {"problems": ["--set rounds: expected 1 or more, got 0"]}


def test_a_board_that_there_is_not_is_named_with_those_there_are(known, capsys):
    assert exit_code(["plan", *MIXED, "--explain", "rpi-zero-w"]) == 3
    assert capsys.readouterr() == (
        "",
        (
            "--explain: expected one of rpi-zero-2w, rpi-3b-plus-nbiot, rpi-3b-plus, phone-old, "
            "rpi-4b-4gb, rpi-5-8gb, jetson-orin-nano, or a device id from sim-0000 to sim-0009, "
            'got "rpi-zero-w"; did you mean "rpi-zero-2w"?\n'
        ),
    )


def test_where_no_board_can_train_the_code_is_that_of_a_run(known, capsys):
    none = [*MIXED, "--set", "limits.flops-per-round=1"]
    assert exit_code(["plan", *none]) == 6
    out, err = capsys.readouterr()
    assert out.count(" sits out: ") == 7
    assert "limits.flops-per-round is 1" in out
    assert err == (
        "no board that is asked in round 1 can train; a run would have no update to merge. Raise "
        "the limits that the boards name, or choose other boards\n"
    )
    found = as_json(none, capsys, code=6)
    assert {board["sits_out"]["limit"] for board in found["boards"]} == {"flops"}
    assert found["run"]["modelled_upload_bytes"] == 0


def test_data_that_is_not_here_is_asked_for_or_a_number_instead(known, capsys):
    assert exit_code(["plan", "fedfreeze", "--set", "task=cifar10"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("CIFAR-10 does not ship with the project and was found nowhere")
    assert err.endswith("To plan without the data, say --examples N, how many a board has.\n")
    assert "as --examples says" in printed([*MIXED, "--set", "task=cifar10"], capsys)


def test_a_round_that_the_run_does_not_get_to_is_not_planned(known, capsys):
    assert exit_code(["plan", *MIXED, "--round", "31"]) == 3
    assert capsys.readouterr().err == (
        "--round: expected at most 30, the rounds of the run, got 31; name an earlier one, or plan "
        "a longer run with --set rounds=31\n"
    )
    planned = as_json([*MIXED, "--round", "31", "--set", "rounds=31"], capsys)
    assert planned["round"] == 31


def test_one_board_is_one(known, capsys):
    said = printed([*MIXED, "--clients", "1"], capsys)
    assert "\n1 board with 300 examples each, as --examples says\n" in said


# ---- what is remembered


def test_check_and_a_first_plan_remember_what_the_next_one_needs(capsys):
    strategy = load("fedfreeze")
    assert cached_layout("fashion-cnn", strategy.options) is None
    assert exit_code(["check", "fedfreeze"]) == 0
    layout = cached_layout("fashion-cnn", strategy.options)
    assert layout is not None
    assert len(layout) == 6

    assert cached_examples("fashion-cnn", strategy.split, 10, None) is None
    capsys.readouterr()
    printed(["fedfreeze"], capsys)
    held = cached_examples("fashion-cnn", strategy.split, 10, None)
    assert sum(held) == 2_700  # a tenth of 3,000 is the server's
    assert examples_of(strategy, 10, None) == held


def test_a_plan_from_what_is_remembered_loads_no_torch(known):
    program = (
        "import sys\n"
        "from cli.command_line import exit_code\n"
        f"assert exit_code(['plan', *{MIXED!r}, '--totals']) == 0\n"
        "print(*{'torch', 'ray'} & set(sys.modules), file=sys.stderr, end='')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("fedfreeze on fleet mixed: round 1 of 30, seed 0")
