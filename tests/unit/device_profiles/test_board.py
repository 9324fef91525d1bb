"""Boards: what their files say, and how mistakes in them are reported."""

import pytest

from device_profiles.board import Rated, board_from_text, boards, load_board
from fedfreeze.errors import ConfigError
from fedfreeze.settings import Settings

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
        "jetson-xavier-nx",
        "laptop",
        "phone-new",
        "phone-old",
        "rpi-3b-plus",
        "rpi-3b-plus-nbiot",
        "rpi-4b-2gb",
        "rpi-4b-4gb",
        "rpi-4b-8gb",
        "rpi-5-4gb",
        "rpi-5-8gb",
        "rpi-zero-2w",
    )


@pytest.mark.parametrize("name", boards())
def test_every_board_loads_under_its_file_name(name):
    assert load_board(name).name == name


def every_value(table):
    """Every value of a table and its sub-tables that has a source."""
    if isinstance(table, Rated):
        yield table
    elif isinstance(table, Settings):
        for name in type(table).model_fields:
            yield from every_value(getattr(table, name))


@pytest.mark.parametrize("name", boards())
def test_no_board_claims_a_measurement_of_ours(name):
    board = load_board(name)
    assert not [rated.source for rated in every_value(board) if rated.source[:8] == "measured"]


@pytest.mark.parametrize("name", boards())
def test_a_board_draws_most_when_it_computes_and_least_when_it_idles(name):
    power = load_board(name).power
    assert power.idle.value < power.radio.value <= power.compute.value


def test_the_narrow_band_board_is_the_same_board_behind_another_modem():
    plain, modem = load_board("rpi-3b-plus"), load_board("rpi-3b-plus-nbiot")
    assert (modem.flops, modem.memory) == (plain.flops, plain.memory)
    low, high = (modem.uplink.value * (1 + sign * modem.uplink.spread) for sign in (-1, 1))
    assert 25_000 / 8 <= low < high <= 60_000 / 8


# float32 operations of one core in one cycle at most, multiply and add counted apart: Arm's
# optimisation guides for Cortex-A53, A57 and A72 (one 128-bit pipe) and A76 (two); 32 is two
# 256-bit pipes or four 128-bit ones, the most that any other processor here has.
PER_CYCLE = {"rpi-zero": 8, "rpi-3b": 8, "rpi-4b": 8, "rpi-5": 16}


@pytest.mark.parametrize("name", boards())
def test_no_board_is_faster_than_its_cores_or_its_gpu_can_be(name):
    board = load_board(name)
    if board.hardware.gpu is not None:
        most = board.hardware.gpu.peak.value
    else:
        a_cycle = next((flop for start, flop in PER_CYCLE.items() if name.startswith(start)), 32)
        most = board.hardware.cores.value * board.hardware.clock.value * a_cycle
    assert board.flops.value * (1 + board.flops.spread) < most / 2


@pytest.mark.parametrize(
    ("name", "cuda_cores", "clock_hz"),
    [
        ("jetson-nano", 128, 921.6e6),
        ("jetson-xavier-nx", 384, 1100e6),
        ("jetson-orin-nano", 1024, 625e6),
    ],
)
def test_a_gpus_peak_is_two_operations_of_each_core_in_each_cycle(name, cuda_cores, clock_hz):
    gpu = load_board(name).hardware.gpu
    assert gpu.memory == "shared"
    assert gpu.peak.value == pytest.approx(cuda_cores * 2 * clock_hz, rel=0.001)


@pytest.mark.parametrize(
    ("name", "ram_gib", "device_tree"),
    [
        ("rpi-zero-2w", 0.5, "Raspberry Pi Zero 2 W"),
        ("rpi-3b-plus", 1, "Raspberry Pi 3 Model B Plus"),
        ("rpi-4b-2gb", 2, "Raspberry Pi 4 Model B"),
        ("rpi-4b-4gb", 4, "Raspberry Pi 4 Model B"),
        ("rpi-4b-8gb", 8, "Raspberry Pi 4 Model B"),
        ("rpi-5-4gb", 4, "Raspberry Pi 5 Model B"),
        ("rpi-5-8gb", 8, "Raspberry Pi 5 Model B"),
    ],
)
def test_a_board_holds_the_memory_that_its_name_says(name, ram_gib, device_tree):
    hardware = load_board(name).hardware
    assert (hardware.ram.value, hardware.device_tree) == (ram_gib * 2**30, device_tree)


def test_boards_that_differ_in_memory_only_share_every_other_value():
    family = [load_board(f"rpi-4b-{size}gb") for size in (2, 4, 8)]
    assert len({(b.flops, b.uplink, b.downlink, b.power) for b in family}) == 1
    assert family[0].memory.value < family[1].memory.value < family[2].memory.value


@pytest.mark.parametrize("name", boards())
def test_soldered_facts_of_a_named_board_are_from_its_datasheet(name):
    hardware = load_board(name).hardware
    kinds = {rated.source.partition(":")[0] for rated in every_value(hardware)}
    assert kinds == {"datasheet" if hardware.device_tree else "estimate"}


HARDWARE = """
[hardware]
cores = { value = 4, source = "datasheet: page 1" }
clock = { value = "1 GHz", source = "datasheet: page 1" }
ram = { value = "180 MB", source = "datasheet: page 1" }
"""


def test_more_memory_than_the_board_has_is_refused_with_what_is_left():
    with pytest.raises(ConfigError) as caught:
        board_from_text(GOOD + HARDWARE, "toy.toml")
    assert caught.value.problems == [
        (
            "toy.toml:9: memory: expected what 180 MB of RAM leave beside SuperNode and SuperExec, "
            "55 MB at most, got 64 MB with a spread of 0"
        )
    ]


def test_a_gpus_own_memory_is_not_the_boards():
    gpu = """
[hardware.gpu]
memory = "own"
peak = { value = "1 TFLOP/s", source = "datasheet: page 2" }
"""
    assert board_from_text(GOOD + HARDWARE + gpu, "toy.toml").memory.value == 64e6


def test_every_mistake_in_hardware_is_reported_with_its_line():
    wrong = HARDWARE.replace("value = 4,", 'value = "4",').replace("ram =", "rma =")
    with pytest.raises(ConfigError) as caught:
        board_from_text(GOOD + wrong, "toy.toml")
    assert caught.value.problems == [
        "toy.toml:33: hardware.ram: missing; this key must be set",
        'toy.toml:34: hardware.cores.value: expected a whole number, got "4"',
        'toy.toml:36: hardware.rma: unknown key; did you mean "ram"?',
    ]


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
        f'unknown board "rpi-4b"; the boards are {", ".join(boards())}; did you mean "rpi-4b-2gb"?'
    )
