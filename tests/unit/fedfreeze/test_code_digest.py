"""The digest by which a server knows a foreign client app."""

import re

import pytest

from fedfreeze.code_digest import ROOMS, code_digest


@pytest.fixture
def make(tmp_path):
    """Makes a fresh copy of a small project with changes; digests are cached by folder."""
    count = 0

    def project(changes=None):
        nonlocal count
        count += 1
        root = tmp_path / str(count)
        for room in ROOMS:
            (root / room).mkdir(parents=True)
            (root / room / "a.py").write_bytes(f"# {room}\nx = 1\n".encode())
        for name, data in (changes or {}).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return code_digest(root)

    return project


def test_it_is_16_hex_digits_and_the_same_for_the_same_code(make):
    assert re.fullmatch("[0-9a-f]{16}", make())
    assert make() == make()


@pytest.mark.parametrize("room", ROOMS)
def test_a_changed_byte_in_any_room_changes_it(make, room):
    assert make({f"{room}/a.py": b"x = 2\n"}) != make()


@pytest.mark.parametrize(
    "changes",
    [
        {"strategies/b.py": b""},
        {"strategies/freeze/b.py": b""},
        {"strategies/a.py": b"", "strategies/b.py": b"# strategies\nx = 1\n"},
    ],
)
def test_a_new_or_moved_module_changes_it(make, changes):
    assert make(changes) != make()


def test_content_that_moves_from_one_file_to_the_next_changes_it(make):
    left = make({"tasks/a.py": b"12", "tasks/b.py": b"3"})
    assert left != make({"tasks/a.py": b"1", "tasks/b.py": b"23"})


def test_line_ends_and_what_is_no_code_do_not_count(make):
    windows = {f"{room}/a.py": f"# {room}\r\nx = 1\r\n".encode() for room in ROOMS}
    other = {"tests/a.py": b"", "cli/a.py": b"", "strategies/x.toml": b"", "README.md": b""}
    assert make(windows) == make(other) == make()


def test_the_default_is_the_code_that_runs_here():
    from pathlib import Path

    assert code_digest() == code_digest(Path(__file__).parents[3])
