"""The error tree: one base, one exit code each, and what each carries."""

import pytest

from fedfreeze import errors
from fedfreeze.errors import ConfigError, FedFreezeError, PlanError

TREE = {
    "FedFreezeError": 1,
    "ConfigError": 3,
    "LayoutError": 4,
    "PacketError": 4,
    "ProtocolError": 4,
    "PlanError": 4,
    "StateError": 5,
    "FleetError": 6,
    "RunError": 7,
}


def test_the_tree_and_its_exit_codes_are_these():
    classes = {n: c for n, c in vars(errors).items() if isinstance(c, type)}
    assert {name: cls.exit_code for name, cls in classes.items()} == TREE
    assert all(issubclass(cls, FedFreezeError) for cls in classes.values())


def test_the_tree_in_the_docstring_is_the_tree():
    for name in set(TREE) - {"FedFreezeError"}:
        assert f"─ {name}" in errors.__doc__


@pytest.mark.parametrize(
    ("problems", "summary", "lines"),
    [
        ("one", "", ["one"]),
        (["one", "two"], "", ["one", "two"]),
        (
            ["one", "two"],
            "2 errors. Nothing was started.",
            ["one", "two", "2 errors. Nothing was started."],
        ),
    ],
)
def test_a_config_error_holds_every_problem_on_a_line_of_its_own(problems, summary, lines):
    error = ConfigError(problems, summary)
    assert str(error).split("\n") == lines
    assert error.problems == ([problems] if isinstance(problems, str) else problems)


def test_a_config_error_does_not_share_the_list_it_was_given():
    problems = ["one"]
    error = ConfigError(problems)
    problems.append("two")
    assert error.problems == ["one"]


def test_a_plan_error_names_the_limit_that_is_short():
    error = PlanError("needs 9 MB, has 8 MB", "memory")
    assert (str(error), error.limit) == ("needs 9 MB, has 8 MB", "memory")
