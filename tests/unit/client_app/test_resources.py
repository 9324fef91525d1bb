"""Who a node is, and what it can do: simulated boards and real ones."""

import pytest
from flwr.app import Context, RecordDict

from client_app.link_log import Link
from client_app.machine import FakeMachine
from client_app.resources import Identity, capacity_now, identify, measured_dir, state_dir
from device_profiles.board import load_board
from device_profiles.fleet import fleet_text
from device_profiles.simulated import simulated_capacity
from fedfreeze.errors import ConfigError


def context(**node_config):
    config = {name.replace("_", "-"): value for name, value in node_config.items()}
    return Context(1, 7, config, RecordDict(), {})


def test_a_simulated_node_is_named_by_its_partition():
    assert identify(context(partition_id=3, num_partitions=10)) == Identity(
        device_id="sim-0003",
        index=3,
        clients=10,
        simulated=True,
        profile=None,
        state_dir=None,
        data_dir=None,
    )


def test_a_real_board_is_what_its_node_config_says():
    board = identify(
        context(device_id="cam-07", profile="rpi-4b-4gb", state_dir="/state", data_dir="/data")
    )
    assert board == Identity("cam-07", 0, 1, False, "rpi-4b-4gb", "/state", "/data")


def test_a_real_board_may_hold_a_part_of_the_data():
    board = identify(context(device_id="cam-07", partition_id=2, num_partitions=4))
    assert (board.index, board.clients, board.simulated) == (2, 4, False)


def test_an_empty_text_is_no_text():
    board = identify(context(device_id="", partition_id=0, num_partitions=1, profile=""))
    assert (board.device_id, board.simulated, board.profile) == ("sim-0000", True, None)


@pytest.mark.parametrize("config", [{}, {"device_id": ""}, {"profile": "rpi-4b-4gb"}])
def test_a_node_without_a_name_says_how_to_give_it_one(config):
    with pytest.raises(ConfigError) as caught:
        identify(context(**config))
    assert str(caught.value) == (
        "this node has no name; start it with --node-config 'device-id=\"...\"' "
        "(simulated nodes are named by their partition-id)"
    )


@pytest.mark.parametrize("key", ["device-id", "profile", "state-dir", "data-dir"])
@pytest.mark.parametrize("value", [7, 1.5, True])
def test_a_text_of_another_type_is_refused_by_its_key(key, value):
    config = {"partition-id": 0, "num-partitions": 1, key: value}
    with pytest.raises(ConfigError) as caught:
        identify(context(**config))
    assert str(caught.value) == (
        f'node-config {key}: expected text, got {value!r}; write {key}="..."'
    )


@pytest.mark.parametrize("key", ["partition-id", "num-partitions"])
@pytest.mark.parametrize("value", ["2", 2.0, True])
def test_a_number_of_another_type_is_refused_by_its_key(key, value):
    config = {"device-id": "cam", key: value}
    with pytest.raises(ConfigError) as caught:
        identify(context(**config))
    assert str(caught.value) == f"node-config {key}: expected a whole number, got {value!r}"


def now(who, **kwargs):
    asked = {"fleet": fleet_text("mixed"), "seed": 3, "round_number": 5, "device": "cpu"}
    return capacity_now(who, **asked, **kwargs)


class Untouchable:
    def __getattr__(self, name):
        raise AssertionError("a simulation must not measure the machine it runs on")


def test_a_simulated_board_can_do_what_its_profile_says_whatever_the_machine():
    who = identify(context(partition_id=9, num_partitions=10))
    capacity, profile = now(who, machine=Untouchable())
    board = load_board(profile)
    assert capacity == simulated_capacity(board, seed=3, device_id="sim-0009", round_number=5)
    assert {known.source for known in vars(capacity).values()} == {"profile"}


def test_a_real_board_takes_what_it_cannot_measure_from_its_profile():
    who = identify(context(device_id="cam", profile="rpi-4b-4gb"))
    capacity, profile = now(who, machine=FakeMachine(memory_bytes=123.0))
    board = load_board("rpi-4b-4gb")
    assert profile == "rpi-4b-4gb"
    assert {name: (known.value, known.source) for name, known in vars(capacity).items()} == {
        "flops_per_s": (board.flops.value, "profile"),
        "memory_bytes": (123.0, "measured"),
        "uplink_bytes_per_s": (board.uplink.value, "profile"),
        "downlink_bytes_per_s": (board.downlink.value, "profile"),
    }


def test_a_real_board_without_a_profile_is_assumed_to_be_the_weakest_of_the_fleet():
    who = identify(context(device_id="cam"))
    capacity, profile = now(who, machine=FakeMachine(memory_bytes=123.0))
    assert profile == "rpi-zero-2w"
    assert capacity.flops_per_s.source == capacity.uplink_bytes_per_s.source == "assumed"
    assert capacity.flops_per_s.value == load_board("rpi-zero-2w").flops.value
    assert (capacity.memory_bytes.value, capacity.memory_bytes.source) == (123.0, "measured")


def test_an_unknown_profile_is_refused():
    who = identify(context(device_id="cam", profile="rpi-4b-4g"))
    with pytest.raises(ConfigError) as caught:
        now(who)
    assert str(caught.value).startswith('unknown board "rpi-4b-4g"; the boards are ')
    assert str(caught.value).endswith('; did you mean "rpi-4b-4gb"?')


def test_everything_that_a_real_board_measures_goes_before_its_profile():
    who = identify(context(device_id="cam", profile="rpi-4b-4gb"))
    machine = FakeMachine(flops_per_s=1.0, memory_bytes=2.0, link=Link(3.0, 4.0))
    capacity, profile = now(who, machine=machine)
    assert profile == "rpi-4b-4gb"
    assert [(known.value, known.source) for known in vars(capacity).values()] == [
        (1.0, "measured"),
        (2.0, "measured"),
        (3.0, "measured"),
        (4.0, "measured"),
    ]


def test_a_board_keeps_what_it_measured_beside_its_state_and_apart_from_others(monkeypatch):
    monkeypatch.setenv("FEDFREEZE_HOME", "/home/pi/ff")
    told = identify(context(device_id="cam-07", state_dir="/state"))
    untold = identify(context(device_id="cam-08"))
    assert [str(state_dir(who)) for who in (told, untold)] == ["/state", "/home/pi/ff/state"]
    assert [str(measured_dir(who)) for who in (told, untold)] == [
        "/state/measured/cam-07",
        "/home/pi/ff/state/measured/cam-08",
    ]
