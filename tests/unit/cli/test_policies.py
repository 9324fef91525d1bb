import json

from cli.command_line import exit_code
from strategies.freeze import POLICIES
from strategies.methods import METHODS


def test_every_policy_and_method_is_listed_with_its_keys(capsys):
    assert exit_code(["policies", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(c["table"], c["name"]) for c in listed] == [
        *(("freeze", name) for name in POLICIES),
        *(("method", name) for name in METHODS),
    ]
    by_name = {c["name"]: c for c in listed}
    (rate,) = (k for k in by_name["fedavg"]["keys"] if k["name"] == "server-learning-rate")
    assert (rate["kind"], rate["default"]) == ("number, > 0", "1.0")


def test_one_policy_is_shown_alone(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert exit_code(["policies", "fedfreeze"]) == 0
    out = capsys.readouterr().out
    assert out.startswith('[freeze] policy = "fedfreeze"\n')
    assert "threshold" in out
    assert "fused score above which a layer freezes" in out
    assert "[method]" not in out


def test_an_unknown_policy_is_answered_with_the_nearest_and_all(capsys):
    assert exit_code(["policies", "fedfreez"]) == 3
    names = ", ".join([*POLICIES, *METHODS])
    assert capsys.readouterr().err == (
        f'no policy or method "fedfreez"; did you mean "fedfreeze"?\nThere are {names}.\n'
    )
