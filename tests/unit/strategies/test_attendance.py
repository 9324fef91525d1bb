"""Who is there, who leaves and what it takes, with times and joules worked out by hand."""

import json

import pytest

from device_profiles.clock import VirtualClock
from device_profiles.fleet import fleet_from_text
from device_profiles.presence import Presence, available
from fedfreeze.errors import FleetError
from fedfreeze.plan import PlanCost
from strategies.attendance import Attendance
from strategies.round_result import RoundResult

DEADLINE_S = 60.0
# A laptop idles at 6 W, computes at 28 W and transfers at 8 W: 16 J, 140 J and 24 J, 180 J in all.
WORK = PlanCost(2.0, 5.0, 3.0, 0.0)


def fleet_of(*ways):
    """A laptop for each way to take part."""
    text = "".join(f'[[board]]\nprofile = "laptop"\n{way}\n' for way in ways)
    return fleet_from_text(text, "mine.toml")


class Simulation:
    """Boards ``sim-0000``, ... of one fleet, round by round."""

    def __init__(self, *ways, start_s=0.0, seed=0):
        self.attendance = Attendance(fleet_of(*ways), seed=seed, deadline_s=DEADLINE_S)
        self.clock = VirtualClock(start_s)
        self.profiles = {f"sim-{index:04d}": "laptop" for index in range(len(ways))}
        self.number = 0

    def open(self, number=None):
        self.number = self.number + 1 if number is None else number
        result = RoundResult(self.number)
        result.begins(
            self.attendance.open_round(self.number, self.profiles, len(self.profiles), self.clock)
        )
        return result

    def play(self, cost=WORK, asked=None, silent=(), sat_out=()):
        """One round of everybody who is there, or of some."""
        result = self.open()
        there = [i for i in self.profiles if i not in result.away] if asked is None else asked
        result.asked = dict.fromkeys(there)
        result.sat_out = dict.fromkeys(sat_out, "no room")
        gone = {*silent, *sat_out}
        closing = self.attendance.close_round(
            {i: cost for i in there if i not in gone},
            self.clock,
            asked=result.asked,
            awaited_s=None if result.expected else result.awaited_s,
        )
        result.ends(closing)
        return result


def battery(joules, start=1.0):
    return f'battery = {{ capacity = "{joules} J", start = {start} }}'


# ---- when a round begins


def test_a_board_is_away_outside_its_windows_and_the_reason_says_until_when():
    ways = ("", "availability = [[0, 100], [7200.5, 9000]]", "availability = [[0, 100]]")
    assert Simulation(*ways, start_s=99.9).open().away == {}
    assert Simulation(*ways, start_s=100.0).open().away == {
        "sim-0001": "outside its windows until 7200.5 s",
        "sim-0002": "its windows are over",
    }


def test_a_board_of_a_probability_is_away_as_its_draw_says():
    simulation = Simulation("", "availability = 0.5", "availability = 0", seed=3)
    for number in range(1, 50):
        drawn = available(
            Presence(0.5), seed=3, device_id="sim-0001", round_number=number, now_s=0.0
        )
        expected = {} if drawn else {"sim-0001": "not there by chance"}
        assert simulation.open().away == {**expected, "sim-0002": "its probability is 0"}


def test_a_board_with_an_empty_battery_is_away_for_ever():
    simulation = Simulation("", battery(100, start=0), battery(100))
    assert simulation.open().away == {"sim-0001": "its battery is empty"}
    simulation.clock.move_to(1e6)
    assert simulation.open().away == {"sim-0001": "its battery is empty"}


def test_a_round_that_somebody_is_there_for_begins_at_once():
    simulation = Simulation("availability = [[50, 60]]", "", start_s=7.0)
    result = simulation.open()
    assert (simulation.clock.now_s, result.simulated_wait_s) == (7.0, 0.0)
    assert result.awaited_s == 50.0


def test_nobody_is_awaited_where_nobody_who_is_away_comes_again():
    ways = ("", "availability = [[0, 5]]", "availability = 0", battery(9, start=0))
    assert Simulation(*ways, start_s=7.0).open().awaited_s is None


# ---- waiting


def test_while_nobody_is_there_the_clock_goes_to_the_next_window():
    later = 0.1 + 0.2  # no sum of the clock comes to it by rounding
    simulation = Simulation(
        "availability = [[0, 0.1], [90, 99]]", f"availability = [[{later!r}, 80]]", start_s=0.1
    )
    result = simulation.open()
    assert simulation.clock.now_s == later
    assert result.simulated_wait_s == later - 0.1
    assert result.away == {"sim-0000": "outside its windows until 90 s"}
    assert simulation.play().simulated_s == 10.0


def test_where_boards_come_by_chance_the_server_looks_again_after_each_deadline():
    simulation = Simulation("availability = 0.05", start_s=7.0)
    looks = set()
    for number in range(1, 20):
        begin_s = simulation.clock.now_s
        result = simulation.open()
        look = next(
            k
            for k in range(1000)
            if available(
                Presence(0.05),
                seed=0,
                device_id="sim-0000",
                round_number=number,
                now_s=0.0,
                look=k,
            )
        )
        assert result.simulated_wait_s == pytest.approx(look * DEADLINE_S)
        assert simulation.clock.now_s == pytest.approx(begin_s + look * DEADLINE_S)
        assert result.away == {}
        looks.add(look)
    assert max(looks) > 3


def test_a_window_that_opens_before_the_next_look_is_not_waited_past():
    simulation = Simulation("availability = 1e-9", "availability = [[130, 150]]")
    result = simulation.open()
    assert simulation.clock.now_s == 130.0
    assert result.away == {"sim-0000": "not there by chance"}


def test_waiting_empties_batteries_and_a_board_that_would_be_empty_by_then_is_not_waited_for():
    """They idle at 6 W: 1,200 J last for 200 s, and of 1,500 J 240 are left after 210 s."""
    simulation = Simulation(
        f"availability = [[200, 900]]\n{battery(1200)}",
        f"availability = [[210, 900]]\n{battery(1500)}",
    )
    result = simulation.open()
    assert simulation.clock.now_s == 210.0
    assert result.away == {"sim-0000": "its battery is empty"}
    assert simulation.attendance.state()["battery_j"] == {"sim-0000": 0.0, "sim-0001": 240.0}


def test_a_run_to_which_nobody_comes_any_more_ends_and_says_why():
    ways = ("availability = [[0, 5]]", "availability = [[0, 9]]", battery(100, start=0))
    simulation = Simulation(*ways, "availability = 0", start_s=12.5)
    with pytest.raises(FleetError) as caught:
        simulation.open(number=8)
    assert str(caught.value) == (
        "round 8: expected somebody of 4 simulated board(s) at 12.5 s or later, got nobody: "
        "its battery is empty (1), its probability is 0 (1), its windows are over (2); give boards "
        "later windows, a higher probability or a fuller battery in the fleet, or ask for 7 "
        "round(s)"
    )
    assert simulation.clock.now_s == 12.5


def test_a_run_to_which_nobody_ever_comes_is_not_told_to_ask_for_0_rounds():
    with pytest.raises(FleetError) as caught:
        Simulation("availability = 0").open()
    assert str(caught.value) == (
        "round 1: expected somebody of 1 simulated board(s) at 0 s or later, got nobody: "
        "its probability is 0 (1); give boards later windows, a higher probability or a fuller "
        "battery in the fleet"
    )


def test_the_server_does_not_look_for_ever_for_a_board_that_hardly_comes():
    with pytest.raises(FleetError, match=r"got nobody: not there by chance \(1\);"):
        Simulation("availability = 1e-12").open()


def test_a_window_far_away_opens_after_the_server_has_stopped_to_count_on_chance():
    simulation = Simulation("availability = 1e-12", "availability = [[1e9, 2e9]]")
    simulation.open()
    assert simulation.clock.now_s == 1e9


# ---- who leaves


def test_an_update_arrives_when_its_board_is_through_with_its_round():
    simulation = Simulation("", start_s=100.0)
    assert simulation.play().arrival_s == {"sim-0000": 110.0}
    assert simulation.clock.now_s == 110.0


def test_a_board_whose_window_closes_before_its_update_arrives_is_lost():
    simulation = Simulation("", "availability = [[0, 107.5]]", "availability = [[0, 110]]")
    simulation.clock.move_to(100.0)
    result = simulation.play()
    assert result.lost == {"sim-0001": "it left 2.5 s before its update would have arrived"}
    assert result.late == ()
    assert (result.simulated_s, simulation.clock.now_s) == (DEADLINE_S, 160.0)
    assert result.arrival_s["sim-0001"] == 110.0


def test_a_board_whose_battery_is_empty_before_its_update_arrives_is_lost():
    """16 J down and 140 J of training leave 12 J, half of what the upload takes."""
    simulation = Simulation("", battery(168), battery(180))
    result = simulation.play()
    assert result.lost == {
        "sim-0001": "its battery was empty 1.5 s before its update would have arrived"
    }
    assert result.battery_j == {"sim-0001": 0.0, "sim-0002": 0.0}
    assert simulation.open().away == {
        "sim-0001": "its battery is empty",
        "sim-0002": "its battery is empty",
    }


def test_whichever_comes_first_is_what_a_board_is_lost_for():
    both = "availability = [[0, 7.25]]\n"
    simulation = Simulation(both + battery(168), both + battery(156))
    assert simulation.play().lost == {
        "sim-0000": "it left 2.75 s before its update would have arrived",
        "sim-0001": "its battery was empty 3 s before its update would have arrived",
    }


def test_a_board_that_leaves_after_the_deadline_is_late():
    simulation = Simulation("availability = [[0, 70]]")
    result = simulation.play(PlanCost(2.0, 80.0, 3.0, 0.0))
    assert (result.late, result.lost) == (("sim-0000",), {})


# ---- joules


def test_a_board_that_was_asked_draws_its_work_and_idles_until_the_round_ends():
    simulation = Simulation("", "availability = [[0, 5]]")
    result = simulation.play()
    drawn_j = 180.0 + 6.0 * (DEADLINE_S - 10.0)
    assert result.modelled_energy_j == {"sim-0000": drawn_j, "sim-0001": drawn_j}
    assert simulation.attendance.modelled_energy_total_j == 2 * drawn_j


def test_the_joules_of_a_run_are_those_of_its_rounds():
    simulation = Simulation("", "")
    drawn_j = [sum(simulation.play().modelled_energy_j.values()) for _ in range(3)]
    assert drawn_j == [360.0] * 3
    assert simulation.attendance.modelled_energy_total_j == 1080.0


def test_a_board_without_an_answer_idles_as_far_as_is_known():
    result = Simulation("", "", "").play(silent=["sim-0001"], sat_out=["sim-0002"])
    assert result.modelled_energy_j == {"sim-0000": 180.0, "sim-0001": 60.0, "sim-0002": 60.0}


def test_a_battery_pays_for_the_rounds_in_which_its_board_is_not_asked():
    simulation = Simulation("", battery(1000))
    assert simulation.play(asked=["sim-0000"]).battery_j == {}
    assert simulation.attendance.state()["battery_j"] == {"sim-0001": 940.0}
    result = simulation.play()
    assert result.battery_j == {"sim-0001": 760.0}
    assert result.modelled_energy_j["sim-0001"] == 180.0


def test_a_board_draws_no_more_than_its_battery_holds():
    simulation = Simulation("", battery(1000, start=0.1))
    result = simulation.play()
    assert result.modelled_energy_j == {"sim-0000": 180.0 + 300.0, "sim-0001": 100.0}


# ---- nobody who is there can train


def test_a_round_of_which_nobody_can_be_asked_lasts_until_somebody_else_may_come():
    simulation = Simulation("", "availability = [[500, 900]]", battery(6000))
    result = simulation.play(asked=[])
    assert (result.simulated_s, simulation.clock.now_s) == (500.0, 500.0)
    assert simulation.attendance.state()["battery_j"] == {"sim-0002": 3000.0}
    result = simulation.play(asked=["sim-0000"], sat_out=["sim-0000"])
    assert (result.away, result.simulated_s) == ({}, 0.0)


# ---- whom it is not about


def test_real_boards_are_never_away_and_nothing_is_known_of_their_joules():
    attendance = Attendance(fleet_of("availability = 0"), seed=0, deadline_s=DEADLINE_S)
    clock = VirtualClock()
    opening = attendance.open_round(1, {"cam-07": "laptop"}, 1, clock)
    assert (opening.away, opening.awaited_s) == ({}, None)
    closing = attendance.close_round({"cam-07": WORK}, clock, asked=["cam-07"])
    assert (closing.arrival_s, closing.energy_j, closing.lost) == ({}, {}, {})
    assert (closing.round_s, clock.now_s) == (10.0, 10.0)
    assert attendance.modelled_energy_total_j is None


def test_a_real_board_beside_simulated_ones_moves_nobodys_place():
    """Two simulated clients stand for the first and the last of three boards, a third would not."""
    simulation = Simulation("", "", "availability = [[50, 90]]")
    simulation.profiles = dict.fromkeys(["sim-0000", "sim-0001", "cam-07"], "laptop")
    assert set(simulation.open().away) == {"sim-0001"}


def test_a_simulated_board_that_is_missing_moves_nobodys_place():
    ways = ("availability = [[0, 5]]", "", "availability = [[50, 90]]")
    simulation = Simulation(*ways)
    simulation.open()
    del simulation.profiles["sim-0001"]
    assert set(simulation.open().away) == {"sim-0002"}


def test_without_a_fleet_everybody_is_there():
    attendance = Attendance(None, seed=0, deadline_s=DEADLINE_S)
    opening = attendance.open_round(1, {"sim-0000": "laptop"}, 1, VirtualClock())
    assert opening.away == {}
    assert attendance.modelled_energy_total_j is None


# ---- a stop


def test_batteries_and_joules_go_on_after_a_stop_as_if_there_had_been_none():
    def simulation():
        return Simulation("", battery(700), f"availability = 0.5\n{battery(500)}")

    whole = simulation()
    played = [whole.play() for _ in range(8)]
    for stop in range(1, 8):
        cut = simulation()
        for _ in range(stop):
            cut.play()
        state = json.loads(json.dumps(cut.attendance.state()))
        resumed = simulation()
        resumed.attendance.restore(state)
        resumed.clock, resumed.number = VirtualClock(cut.clock.now_s), stop
        assert [resumed.play() for _ in range(8 - stop)] == played[stop:]
        assert resumed.attendance.state() == whole.attendance.state()
    assert "sim-0001" in played[3].lost
    assert any("sim-0002" in result.away for result in played)
