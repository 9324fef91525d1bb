"""The server finds the board that a simulated client found for itself."""

import pytest
from flwr.app import Context, RecordDict

from client_app.resources import capacity_now, identify
from device_profiles.fleet import fleet_from_text, fleet_text, load_fleet
from device_profiles.presence import Presence
from strategies.seats import Seat, seats


@pytest.mark.parametrize("clients", [1, 2, 4, 10, 23])
def test_the_server_comes_to_the_board_of_every_client(clients):
    profiles = {}
    for index in range(clients):
        config = {"partition-id": index, "num-partitions": clients}
        who = identify(Context(1, 1, config, RecordDict(), {}))
        asked = {"fleet": fleet_text("evening"), "seed": 0, "round_number": 1, "device": "cpu"}
        profiles[who.device_id] = capacity_now(who, **asked)[1]
    fleet = load_fleet("evening")
    assert seats(fleet, profiles, clients) == {
        f"sim-{index:04d}": Seat(fleet.board(index, clients), fleet.presence(index, clients))
        for index in range(clients)
    }


FLEET = fleet_from_text(
    '[[board]]\nprofile = "laptop"\navailability = 0.5\n[[board]]\nprofile = "rpi-5-8gb"\n',
    "x.toml",
)


def test_a_client_past_the_ten_thousandth_has_its_seat():
    (seat,) = seats(FLEET, {"sim-12000": "laptop"}, 12_001).values()
    assert seat.presence == Presence(0.5)


@pytest.mark.parametrize(
    "device_id",
    [
        "cam-07",
        "sim-",
        "sim-1",
        "sim-00001",
        "sim--001",
        "sim-000x",
        "sim-\u0660\u0660\u0660\u0660",
        "sim-" + "9" * 5000,
    ],
    ids=range(8),
)
def test_a_name_that_no_simulated_client_has_gives_no_seat(device_id):
    assert seats(FLEET, {device_id: "laptop"}, 2) == {}


def test_a_client_beyond_the_nodes_or_of_another_board_has_no_seat():
    assert seats(FLEET, {"sim-0002": "laptop"}, 2) == {}
    assert seats(FLEET, {"sim-0001": "laptop"}, 2) == {}
    assert list(seats(FLEET, {"sim-0001": "rpi-5-8gb"}, 2)) == ["sim-0001"]
