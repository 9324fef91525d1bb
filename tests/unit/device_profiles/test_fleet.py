"""Fleets: their order, and which board a client stands for."""

import pytest

from device_profiles.board import boards, load_board
from device_profiles.fleet import Fleet, fleet_from_text, fleet_text, fleets, load_fleet
from device_profiles.presence import ALWAYS, Battery, Presence
from fedfreeze.errors import ConfigError


@pytest.mark.parametrize("name", ["evening", "high", "low", "mid", "mixed"])
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


@pytest.mark.parametrize("name", [name for name in fleets() if name != "evening"])
def test_every_board_of_the_projects_other_fleets_is_always_there(name):
    fleet = load_fleet(name)
    assert fleet.presences == ()
    assert {fleet.presence(index, fleet.size) for index in range(fleet.size)} == {ALWAYS}


def test_an_evening_has_phones_on_battery_boards_with_windows_and_some_that_stay():
    fleet = load_fleet("evening")
    for board, presence in zip(fleet.entries, fleet.presences, strict=True):
        assert board.name.startswith("phone") == (presence.battery is not None)
    assert ALWAYS in fleet.presences
    assert any(isinstance(presence.availability, tuple) for presence in fleet.presences)
    assert any(presence.availability == 0.8 for presence in fleet.presences)


def test_the_weakest_board_has_the_least_memory_and_of_two_such_the_least_speed():
    assert load_fleet("mixed").weakest.name == "rpi-zero-2w"
    slow, fast = load_board("laptop"), load_board("rpi-5-8gb")
    slow = slow.model_copy(update={"memory": fast.memory, "flops": load_board("rpi-5-4gb").flops})
    fast = fast.model_copy(update={"flops": load_board("laptop").flops})
    assert Fleet("two", (fast, slow)).weakest is slow


DETAILED = """\
[[board]]
profile = "rpi-4b-4gb"
count = 2
availability = 0.8
bandwidth-jitter = 0.5

[[board]]
profile = "phone-old"
availability = [[0, 3600], [7200, 1e4]]
battery = { capacity = "10 Wh", start = 0.5 }

[[board]]
profile = "laptop"
"""


def test_each_board_takes_part_as_its_entry_says():
    fleet = fleet_from_text(DETAILED, "mine.toml")
    on_trace = Presence(((0.0, 3600.0), (7200.0, 10_000.0)), Battery(capacity=36e3, start=0.5))
    assert fleet.presences == (Presence(0.8), Presence(0.8), on_trace, ALWAYS)
    assert [fleet.presence(index, 2) for index in range(2)] == [Presence(0.8), ALWAYS]
    assert on_trace.battery.start_j == 18e3


def test_jitter_swings_both_directions_of_the_link_and_nothing_else():
    fleet, plain = fleet_from_text(DETAILED, "mine.toml"), load_board("rpi-4b-4gb")
    board = fleet.entries[0]
    assert (board.uplink.spread, board.downlink.spread) == (0.5, 0.5)
    assert (board.uplink.value, board.downlink.value) == (plain.uplink.value, plain.downlink.value)
    assert (board.flops, board.memory, board.power) == (plain.flops, plain.memory, plain.power)
    assert fleet.entries[3] == load_board("laptop")


WHAT = (
    "expected a probability, an array of [from, to] in seconds, or the path of a .csv or .json "
    "file, got "
)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("availability", "1.5", "expected a probability from 0 to 1, got 1.5"),
        ("availability", "nan", "expected a probability from 0 to 1, got nan"),
        ("availability", "true", f"{WHAT}true"),
        ("availability", '"often"', f'{WHAT}"often"'),
        ("availability", "{ share = 1 }", f"{WHAT}a table"),
        ("availability", "[]", "expected 1 to 10000 windows [from, to], got 0"),
        (
            "availability",
            "[[0, 5], [7, 7]]",
            "window 2: expected [from, to] in seconds, 0 <= from < to, got [7, 7]",
        ),
        (
            "availability",
            "[[-1, 5]]",
            "window 1: expected [from, to] in seconds, 0 <= from < to, got [-1, 5]",
        ),
        (
            "availability",
            "[[0, inf]]",
            "window 1: expected [from, to] in seconds, 0 <= from < to, got [0, inf]",
        ),
        (
            "availability",
            "[5]",
            "window 1: expected [from, to] in seconds, 0 <= from < to, got 5",
        ),
        (
            "availability",
            "[[0, 5], [4, 9]]",
            "window 2: expected to begin when window 1 has ended, at 5 s or later, got 4 s",
        ),
        ("bandwidth-jitter", "1", "expected less than 1, got 1"),
        ("avalability", "1", 'unknown key; did you mean "availability"?'),
    ],
)
def test_a_wrong_way_to_take_part_is_reported_with_its_line(key, value, message):
    with pytest.raises(ConfigError) as caught:
        fleet_from_text(f'[[board]]\nprofile = "laptop"\n{key} = {value}\n', "mine.toml")
    assert caught.value.problems == [f"mine.toml:3: board[0].{key}: {message}"]


def test_a_battery_without_energy_or_with_more_than_full_is_refused():
    battery = 'battery = { capacity = "0 Wh", start = 2 }'
    with pytest.raises(ConfigError) as caught:
        fleet_from_text(f'[[board]]\nprofile = "laptop"\n{battery}\n', "mine.toml")
    assert caught.value.problems == [
        'mine.toml:3: board[0].battery.capacity: expected more than 0, got "0 Wh"',
        "mine.toml:3: board[0].battery.start: expected 1 or less, got 2",
    ]


def with_traces(folder, *names):
    (folder / "day.csv").write_text("from_s,to_s\n0,3600\n7200,10800.5\n")
    (folder / "day.json").write_text("[[0, 3600], [7200, 10800.5]]")
    entries = [f'[[board]]\nprofile = "laptop"\navailability = "{name}"\n' for name in names]
    (folder / "mine.toml").write_text("".join(entries))
    return str(folder / "mine.toml")


def test_a_trace_may_stand_in_a_file_beside_the_fleet(tmp_path):
    fleet = load_fleet(with_traces(tmp_path, "day.csv", "day.json"))
    assert fleet.presences == (Presence(((0.0, 3600.0), (7200.0, 10_800.5))),) * 2


def test_the_text_of_a_fleet_holds_its_traces_so_that_it_means_the_same_anywhere(tmp_path):
    file = with_traces(tmp_path, "day.csv", "day.json")
    assert fleet_from_text(fleet_text(file), file) == load_fleet(file)


def test_the_text_of_a_fleet_without_trace_files_is_what_was_written(tmp_path):
    (tmp_path / "mine.toml").write_text(f"# mine\n{DETAILED}")
    assert fleet_text(str(tmp_path / "mine.toml")) == f"# mine\n{DETAILED}"
    (tmp_path / "torn.toml").write_text("[[board]")
    assert fleet_text(str(tmp_path / "torn.toml")) == "[[board]"


def test_all_traces_that_cannot_be_read_are_reported_at_once(tmp_path):
    (tmp_path / "torn.csv").write_text("from_s,to_s\n0,x\n")
    file = with_traces(tmp_path, "none.csv", "day.csv", "torn.csv")
    for read in (load_fleet, fleet_text):
        with pytest.raises(ConfigError) as caught:
            read(file)
        assert str(caught.value) == (
            f"{file}:3: board[0].availability: {tmp_path / 'none.csv'}: cannot be read as a trace: "
            "No such file or directory\n"
            f"{file}:9: board[2].availability: {tmp_path / 'torn.csv'}: expected seconds, got 'x'\n"
            f"2 errors in {file}. Nothing was started."
        )


def test_a_path_of_another_host_is_refused():
    text = '[[board]]\nprofile = "laptop"\navailability = "day.csv"\n'
    with pytest.raises(ConfigError) as caught:
        fleet_from_text(text, "fleet.toml")
    assert caught.value.problems == [
        (
            "fleet.toml:3: board[0].availability: expected windows [from, to], got the path "
            '"day.csv", which means nothing on this host; send the '
            "text of `fedfreeze.fleet_text(...)`"
        )
    ]
