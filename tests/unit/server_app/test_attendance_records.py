"""What the records say of simulated boards; of real ones they say nothing."""

from server_app.attendance_records import of_client, of_round
from strategies.round_result import RoundResult


def test_a_round_names_who_was_away_and_lost_and_what_was_drawn():
    result = RoundResult(
        3,
        away={"sim-0002": "its battery is empty", "sim-0001": "not there by chance"},
        lost={"sim-0004": "it left"},
        modelled_energy_j={"sim-0000": 2.5, "sim-0004": 1.5},
        simulated_wait_s=60.0,
    )
    record = of_round(result, 10.0)
    assert record == {
        "clients_away": 2,
        "clients_lost": 1,
        "modelled_energy_j": 4.0,
        "modelled_energy_total_j": 10.0,
        "simulated_wait_s": 60.0,
        "away": {"sim-0001": "not there by chance", "sim-0002": "its battery is empty"},
        "lost": {"sim-0004": "it left"},
    }
    assert list(record["away"]) == ["sim-0001", "sim-0002"]


def test_where_everybody_was_there_nobody_is_named():
    assert of_round(RoundResult(3), 0.0) == {
        "clients_away": 0,
        "clients_lost": 0,
        "modelled_energy_j": 0,
        "modelled_energy_total_j": 0.0,
    }


def test_of_real_boards_nothing_is_written():
    assert of_round(RoundResult(3), None) == {}
    assert of_client(RoundResult(3), "cam-07") == {}


def test_a_client_has_its_arrival_its_joules_and_its_battery_if_it_has_one():
    result = RoundResult(
        3,
        arrival_s={"sim-0000": 12.5, "sim-0001": 13.0},
        modelled_energy_j={"sim-0000": 2.5, "sim-0001": 1.5, "sim-0002": 0.5},
        battery_j={"sim-0001": 99.0},
    )
    assert of_client(result, "sim-0000") == {"arrival_s": 12.5, "modelled_energy_j": 2.5}
    assert of_client(result, "sim-0001") == {
        "arrival_s": 13.0,
        "modelled_energy_j": 1.5,
        "battery_j": 99.0,
    }
    assert of_client(result, "sim-0002") == {"modelled_energy_j": 0.5}
