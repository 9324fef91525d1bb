"""Who may import whom. An arrow that points back makes every later change harder."""

import ast
import itertools
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A room may import itself and the rooms listed here.
MAY_IMPORT = {
    "fedfreeze": set(),
    "compression": {"fedfreeze"},
    "device_profiles": {"fedfreeze"},
    "tasks": {"fedfreeze"},
    "strategies": {"fedfreeze", "compression", "device_profiles", "tasks"},
    "client_app": {"fedfreeze", "compression", "device_profiles", "tasks", "strategies"},
    "server_app": {"fedfreeze", "compression", "device_profiles", "tasks", "strategies"},
    "cli": {
        "fedfreeze",
        "compression",
        "device_profiles",
        "tasks",
        "strategies",
        "client_app",
        "server_app",
    },
}

NEVER = {
    "fedfreeze": {"torch", "torchvision", "timm"},
    "compression": {"torch", "torchvision", "timm", "flwr"},
    "device_profiles": {"torch", "torchvision", "timm"},
    "strategies": {"torch", "torchvision", "timm"},
}

FOR_SHIPPED_CODE_ONLY = {"tests", "experiments"}


def only_for_types(node):
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def imported(source, *, with_late=True):
    """Top-level names that a module imports, with the line of each."""
    tree = ast.parse(source)
    late = {
        id(inner)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or only_for_types(function)
        for inner in ast.walk(function)
    }
    for node in ast.walk(tree):
        if id(node) in late and not with_late:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0], node.lineno


def breaches(room, relative, source):
    # The public namespace fetches other rooms when a name is asked for: only inside functions,
    # and for type checkers.
    with_late = (room, relative) != ("fedfreeze", "__init__.py")
    others = set(MAY_IMPORT) - MAY_IMPORT[room] - {room} | FOR_SHIPPED_CODE_ONLY
    forbidden = others | NEVER.get(room, set())
    return [
        f"{room}/{relative}:{line} imports {name}"
        for name, line in imported(source, with_late=with_late)
        if name in forbidden
    ]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_rooms_below_it(room):
    found = [
        breaches(room, path.relative_to(ROOT / room).as_posix(), path.read_text("utf-8"))
        for path in sorted((ROOT / room).rglob("*.py"))
    ]
    assert found, f"{room} holds no module"
    assert list(itertools.chain.from_iterable(found)) == []


def test_every_package_of_the_project_is_a_room_with_a_rule():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == set(MAY_IMPORT)


@pytest.mark.parametrize(
    ("room", "source", "expected"),
    [
        ("compression", "import torch.nn", ["compression/x.py:1 imports torch"]),
        (
            "compression",
            "def f():\n    from flwr.app import Array",
            ["compression/x.py:2 imports flwr"],
        ),
        ("tasks", "from strategies import schema", ["tasks/x.py:1 imports strategies"]),
        ("client_app", "import server_app", ["client_app/x.py:1 imports server_app"]),
        ("strategies", "import tests.unit", ["strategies/x.py:1 imports tests"]),
        ("strategies", "from . import schema\nimport compression, flwr", []),
        ("cli", "from server_app import app\nimport torch", []),
    ],
)
def test_a_breach_is_seen_wherever_it_stands(room, source, expected):
    assert breaches(room, "x.py", source) == expected


def test_only_the_public_namespace_may_reach_up_and_only_inside_a_function():
    late = "def __getattr__(name):\n    import strategies"
    assert breaches("fedfreeze", "__init__.py", late) == []
    assert breaches("fedfreeze", "__init__.py", "import strategies") != []
    assert breaches("fedfreeze", "plan.py", late) != []
