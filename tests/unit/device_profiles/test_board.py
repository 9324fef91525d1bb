"""Boards: what their files say, and how mistakes in them are reported."""

import pytest

from device_profiles.board import board_from_text, boards, load_board
from fedfreeze.errors import ConfigError

GOOD = """\
name = "toy"
description = "A toy"

[flops]
value = "2 GFLOP/s"
spread = 0.1
source = "estimate: a guess"

[memory]
value = "64 MB"
source = "datasheet: page 3"

[uplink]
value = "8 kbit/s"
source = "published: somewhere"

[downlink]
value = "1 MB/s"
source = "measured: on the bench"

[power.idle]
value = "500 mW"
source = "estimate: a guess"

[power.compute]
value = "2 W"
source = "estimate: a guess"

[power.radio]
value = "1 W"
source = "estimate: a guess"
"""


def test_the_boards_of_the_project_are_these():
    assert boards() == (
        "jetson-nano",
        "jetson-orin-nano",
        "laptop",
        "phone-new",
        "phone-old",
        "rpi-3b-plus",
        "rpi-3b-plus-nbiot",
        "rpi-4b-4gb",
        "rpi-5-8gb",
        "rpi-zero-2w",
    )


@pytest.mark.parametrize("name", boards())
def test_every_board_loads_under_its_file_name(name):
    assert load_board(name).name == name


@pytest.mark.parametrize("name", boards())
def test_no_board_claims_a_measurement_of_ours(name):
    board = load_board(name)
    rated = [board.flops, board.memory, board.uplink, board.downlink]
    rated += [board.power.idle, board.power.compute, board.power.radio]
    assert not [value.source for value in rated if value.source.startswith("measured")]


@pytest.mark.parametrize("name", boards())
def test_a_board_draws_most_when_it_computes_and_least_when_it_idles(name):
    power = load_board(name).power
    assert power.idle.value < power.radio.value <= power.compute.value


def test_the_narrow_band_board_is_the_same_board_behind_another_modem():
    plain, modem = load_board("rpi-3b-plus"), load_board("rpi-3b-plus-nbiot")
    assert (modem.flops, modem.memory) == (plain.flops, plain.memory)
    low, high = (modem.uplink.value * (1 + sign * modem.uplink.spread) for sign in (-1, 1))
    assert 25_000 / 8 <= low < high <= 60_000 / 8


def test_values_are_read_in_base_units():
    board = board_from_text(GOOD, "toy.toml")
    assert board.flops.value == 2e9
    assert board.memory.value == 64e6
    assert board.uplink.value == 1000
    assert board.power.idle.value == 0.5
    assert (board.flops.spread, board.memory.spread) == (0.1, 0.0)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("2 GFLOP/s", "0 GFLOP/s", '5: flops.value: expected more than 0, got "0 GFLOP/s"'),
        ("spread = 0.1", "spread = 1.5", "6: flops.spread: expected less than 1, got 1.5"),
        (
            '"64 MB"',
            "64",
            '10: memory.value: expected a quantity with its unit such as "2 MB", got 64',
        ),
        (
            "datasheet: page 3",
            "page 3",
            (
                '11: memory.source: expected where the value is from, one of "estimate: ...", '
                '"published: ...", "datasheet: ...", "measured: ...", got "page 3"'
            ),
        ),
    ],
)
def test_a_wrong_value_is_reported_with_its_line(good, bad, message):
    with pytest.raises(ConfigError) as caught:
        board_from_text(GOOD.replace(good, bad), "toy.toml")
    assert str(caught.value) == f"toy.toml:{message}\n1 error in toy.toml. Nothing was started."


def test_an_unknown_board_names_the_nearest():
    with pytest.raises(ConfigError) as caught:
        load_board("rpi-4b")
    assert str(caught.value) == (
        f'unknown board "rpi-4b"; the boards are {", ".join(boards())}; did you mean "rpi-4b-4gb"?'
    )
