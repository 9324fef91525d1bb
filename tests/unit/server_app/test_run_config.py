"""The run config: every key checked, every mistake at once, nothing started."""

import json

import pytest

from fedfreeze.errors import ConfigError
from server_app.run_config import DEFAULTS, read
from strategies import schema

PRESETS = ", ".join(schema.presets())


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "out")


def problems(**config):
    with pytest.raises(ConfigError) as caught:
        read({name.replace("_", "-"): value for name, value in config.items()})
    assert str(caught.value) == "\n".join([*caught.value.problems, "Nothing was started."])
    return caught.value.problems


def test_the_defaults_are_a_run_of_the_preset_in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path))
    request = read({})
    assert request.strategy == schema.load("fedfreeze")
    assert (request.min_nodes, request.resume) == (0, False)
    assert request.start_timeout_s == request.strategy.clients.start_timeout > 0
    assert request.fleet_toml == ""
    assert request.folder.path.parent == tmp_path / "runs"
    assert request.folder.name.startswith("fedfreeze-")
    assert request.folder.path.is_dir()


WRONG = [
    ("strategy", 7, "text"),
    ("strategy-toml", True, "text"),
    ("fleet-toml", 1.5, "text"),
    ("set", 3, "text"),
    ("min-nodes", "3", "a whole number"),
    ("min-nodes", 3.0, "a whole number"),
    ("min-nodes", True, "a whole number"),
    ("start-timeout-s", "120", "a number"),
    ("start-timeout-s", True, "a number"),
    ("out-dir", 1, "text"),
    ("data-dir", 7, "text"),
    ("resume", "true", "true or false"),
    ("resume", 1, "true or false"),
]


def test_every_key_is_tried_with_a_wrong_type():
    assert {key for key, _, _ in WRONG} == set(DEFAULTS)


@pytest.mark.parametrize(("key", "value", "expected"), WRONG)
def test_a_key_of_the_wrong_type_is_refused_by_name(key, value, expected):
    assert problems(**{key: value}) == [f"run-config {key}: expected {expected}, got {value!r}"]


def test_a_whole_number_of_seconds_is_a_number(out):
    assert read({"start-timeout-s": 5, "out-dir": out}).start_timeout_s == 5.0


def test_an_unknown_key_is_refused_with_the_known_ones_and_the_way_to_the_strategys():
    assert problems(rounds=5) == [
        (
            f"run-config rounds: unknown key; the keys are {', '.join(DEFAULTS)}. Keys of the "
            "strategy go into set, as in set='rounds=...'"
        )
    ]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"data_dir": "data"},
            (
                "run-config data-dir: expected an absolute path, got 'data'; the server does not "
                "run in your folder"
            ),
        ),
        (
            {"out_dir": "runs/a"},
            (
                "run-config out-dir: expected an absolute path, got 'runs/a'; the server does not "
                "run in your folder"
            ),
        ),
        ({"resume": True}, "run-config resume: needs out-dir, the folder of the run to go on with"),
        ({"min_nodes": -1}, "run-config min-nodes: expected 0 or more, got -1"),
        ({"start_timeout_s": -0.5}, "run-config start-timeout-s: expected 0 or more, got -0.5"),
        (
            {"start_timeout_s": float("nan")},
            "run-config start-timeout-s: expected 0 or more, got nan",
        ),
        (
            {"start_timeout_s": float("inf")},
            "run-config start-timeout-s: expected 0 or more, got inf",
        ),
        (
            {"strategy": "fedavgg"},
            (
                f"run-config strategy: expected one of {PRESETS}, got 'fedavgg'; for a file of "
                "your own use `fedfreeze run --strategy FILE`"
            ),
        ),
        ({"set": "[1]"}, "run-config set: expected words such as \"rounds=5\", got '[1]'"),
        (
            {"set": "[x"},
            "run-config set: Expecting value: line 1 column 2 (char 1), in '[x'",
        ),
        ({"set": 'task="x'}, "run-config set: No closing quotation, in 'task=\"x'"),
    ],
)
def test_a_value_out_of_range_is_refused_with_what_is_expected(config, problem):
    assert problems(**config) == [problem]


def test_all_mistakes_are_reported_at_once_those_of_the_strategy_included():
    found = problems(
        rounds=1,
        resume=1,
        min_nodes=-2,
        out_dir="here",
        strategy_toml="version = 1\nrounds = 0\n[local]\nepochs = true",
    )
    assert [line.partition(":")[0] for line in found] == [
        "run-config rounds",
        "run-config resume",
        "run-config out-dir",
        "run-config min-nodes",
        "strategy.toml",
        "strategy.toml",
    ]
    assert found[-2].startswith("strategy.toml:2: rounds: ")
    assert found[-1].startswith("strategy.toml:4: local.epochs: ")


@pytest.mark.parametrize(
    "text",
    [
        """rounds=5 local.epochs=2 'clients.round-deadline="60 s"'""",
        """["rounds=5", "local.epochs=2", "clients.round-deadline=60 s"]""",
        """  ["rounds=5", "local.epochs=2", "clients.round-deadline=\\"60 s\\""] """,
    ],
)
def test_overrides_are_words_or_a_json_list(out, text):
    strategy = read({"set": text, "out-dir": out}).strategy
    assert (strategy.rounds, strategy.local.epochs) == (5, 2)
    assert strategy.clients.round_deadline == 60.0


def test_the_text_of_a_strategy_wins_over_its_name(out):
    request = read({"strategy-toml": "version = 1\nrounds = 77", "out-dir": out})
    assert request.strategy.rounds == 77


def test_the_larger_min_nodes_of_run_config_and_strategy_holds(out):
    words = json.dumps(["clients.min-nodes=4"])
    assert read({"set": words, "out-dir": out}).min_nodes == 4
    assert read({"set": words, "out-dir": out, "min-nodes": 2}).min_nodes == 4
    assert read({"set": words, "out-dir": out, "min-nodes": 9}).min_nodes == 9


@pytest.mark.parametrize(("asked", "timeout_s"), [(0, 7.0), (0.0, 7.0), (0.5, 0.5)])
def test_a_start_timeout_of_0_is_the_strategys(out, asked, timeout_s):
    words = json.dumps(["clients.start-timeout=7 s"])
    request = read({"set": words, "out-dir": out, "start-timeout-s": asked})
    assert request.start_timeout_s == timeout_s


def test_a_refused_run_config_leaves_no_folder_behind(tmp_path, out, monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", str(tmp_path / "home"))
    problems(min_nodes=-1)
    problems(out_dir=out, strategy="no such")
    assert list(tmp_path.iterdir()) == []


def test_an_out_dir_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    assert problems(out_dir=f"{tmp_path}/file/run") == [
        f"run-config out-dir: {tmp_path}/file/run cannot be made: Not a directory"
    ]


def test_a_new_run_does_not_begin_on_top_of_another_one(tmp_path):
    """Its boards would bring the residuals of the first run into the second."""
    (tmp_path / "checkpoint" / "round-000002").mkdir(parents=True)
    assert problems(out_dir=str(tmp_path)) == [
        (
            f"run-config out-dir: {tmp_path} holds a run already; set resume=true to go on with "
            "it, or choose another folder"
        )
    ]
    assert read({"out-dir": str(tmp_path), "resume": True}).resume


def test_a_folder_that_only_holds_the_request_is_a_new_run(tmp_path):
    (tmp_path / "request.json").write_text("{}")
    assert read({"out-dir": str(tmp_path)}).folder.path == tmp_path
