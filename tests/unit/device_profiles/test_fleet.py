"""Fleets: their order, and which board a client stands for."""

import pytest

from device_profiles.board import boards, load_board
from device_profiles.fleet import Fleet, fleet_from_text, fleets, load_fleet
from fedfreeze.errors import ConfigError


@pytest.mark.parametrize("name", ["high", "low", "mid", "mixed"])
def test_the_fleets_of_the_project_have_ten_boards(name):
    assert name in fleets()
    assert load_fleet(name).size == 10
    assert load_fleet(name).name == name


def test_the_mixed_fleet_holds_boards_short_of_memory_and_of_uplink():
    entries = load_fleet("mixed").entries
    assert min(board.memory.value for board in entries) < 64e6
    assert min(board.uplink.value for board in entries) < 10e3
    assert max(board.memory.value for board in entries) > 1e9
    assert max(board.uplink.value for board in entries) > 1e6


def test_boards_stand_in_the_order_of_the_file():
    text = '[[board]]\nprofile = "laptop"\n[[board]]\nprofile = "jetson-nano"\ncount = 2\n'
    names = [board.name for board in fleet_from_text(text, "folder/mine.toml").entries]
    assert names == ["laptop", "jetson-nano", "jetson-nano"]


def five() -> Fleet:
    names = ("rpi-zero-2w", "rpi-3b-plus", "rpi-4b-4gb", "rpi-5-8gb", "laptop")
    return Fleet("five", tuple(load_board(name) for name in names))


@pytest.mark.parametrize(
    ("clients", "places"),
    [
        (1, [0]),
        (2, [0, 4]),
        (3, [0, 2, 4]),
        (4, [0, 1, 3, 4]),
        (5, [0, 1, 2, 3, 4]),
        (7, [0, 1, 2, 3, 4, 0, 1]),
    ],
)
def test_clients_stand_for_evenly_spread_boards(clients, places):
    fleet = five()
    assert [fleet.board(index, clients) for index in range(clients)] == [
        fleet.entries[place] for place in places
    ]


@pytest.mark.parametrize("index", [-1, 3])
def test_a_client_outside_the_fleet_is_refused(index):
    with pytest.raises(ConfigError) as caught:
        five().board(index, 3)
    assert str(caught.value) == f"client {index} is not one of 3 clients, counted from 0"


def test_all_mistakes_of_a_fleet_are_reported_at_once():
    text = '[[board]]\nprofile = "laptopp"\n\n[[board]]\nprofile = "laptop"\ncount = 0\n'
    with pytest.raises(ConfigError) as caught:
        fleet_from_text(text, "mine.toml")
    assert str(caught.value) == (
        f'mine.toml:2: board[0].profile: unknown board "laptopp"; '
        f'the boards are {", ".join(boards())}; did you mean "laptop"?\n'
        "mine.toml:6: board[1].count: expected 1 or more, got 0\n"
        "2 errors in mine.toml. Nothing was started."
    )


def test_a_count_that_would_fill_the_memory_is_refused():
    text = '[[board]]\nprofile = "laptop"\ncount = 1000000000\n'
    with pytest.raises(ConfigError) as caught:
        fleet_from_text(text, "mine.toml")
    assert caught.value.problems == [
        "mine.toml:3: board[0].count: expected 10000 or less, got 1000000000"
    ]


def test_a_fleet_without_boards_is_refused():
    with pytest.raises(ConfigError) as caught:
        fleet_from_text("board = []", "mine.toml")
    assert caught.value.problems == [
        "mine.toml:1: board: expected at least one [[board]] table, got an empty array"
    ]


def test_a_fleet_can_be_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[[board]]\nprofile = "laptop"\n')
    assert load_fleet(str(file)).name == "mine"


def test_an_unknown_fleet_names_the_nearest():
    with pytest.raises(ConfigError) as caught:
        load_fleet("mixd")
    assert str(caught.value) == (
        f'unknown fleet "mixd"; the fleets are {", ".join(fleets())}, '
        'or give a path that ends in .toml; did you mean "mixed"?'
    )


def test_a_missing_file_is_named(tmp_path):
    file = tmp_path / "none.toml"
    with pytest.raises(ConfigError) as caught:
        load_fleet(str(file))
    assert str(caught.value) == (
        f"{file}: cannot be read as a fleet: [Errno 2] No such file or directory: '{file}'"
    )
