import json

from cli.command_line import exit_code
from strategies.schema import from_text, load


def test_a_valid_file_is_printed_resolved_and_can_be_read_again(capsys):
    assert exit_code(["check", "fedavg", "--set", "rounds=2", "--set", "seed = 7"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# fedavg is a valid strategy. With every default it reads:\n\nversion")
    assert from_text(out) == load("fedavg", ["rounds=2", "seed=7"])


def test_every_mistake_goes_to_standard_error_and_the_exit_code_is_3(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text("version = 1\nronds = 3\n", encoding="utf-8")
    assert exit_code(["check", str(path), "--set", "seed=-1"]) == 3
    assert capsys.readouterr() == (
        "",
        (
            f"{path}:1: rounds: missing; this key must be set\n"
            f'{path}:2: ronds: unknown key; did you mean "rounds"?\n'
            "--set seed: expected 0 or more, got -1\n"
            f"3 errors in {path} and --set. Nothing was started.\n"
        ),
    )


def test_a_script_gets_one_json_object_either_way(capsys):
    assert exit_code(["check", "full", "--json"]) == 0
    good = json.loads(capsys.readouterr().out)
    assert (good["valid"], good["problems"]) == (True, [])
    assert good["strategy"]["compression"]["upload-time"] == "1 s"

    assert exit_code(["check", "full", "--json", "--set", "rounds=0"]) == 3
    bad, err = capsys.readouterr()
    assert json.loads(bad) == {
        "valid": False,
        "problems": ["--set rounds: expected 1 or more, got 0"],
    }
    assert err == ""
