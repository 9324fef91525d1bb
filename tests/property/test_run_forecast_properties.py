"""The forecast of a run: sums of its boards, and sums of rounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_profiles.fleet import fleet_from_text
from device_profiles.presence import available
from strategies import schema
from strategies.forecast import Planned, forecast
from strategies.orders import ORDER_BYTES
from strategies.run_forecast import run_forecast
from tests.unit.strategies.samples import stack

LAPTOP = ("laptop", 1, "1.0", "")
LAYOUT = stack(stem=400, body=2_000, tail=8_000, head=500)

boards = st.lists(
    st.tuples(
        st.sampled_from(["rpi-zero-2w", "rpi-4b-4gb", "rpi-5-8gb", "laptop"]),
        st.integers(1, 3),
        st.sampled_from(["1.0", "0.5", "0.0", "[[0, 40], [90, 5000]]"]),
        st.sampled_from(["", 'battery = { capacity = "50 J" }']),
    ),
    min_size=1,
    max_size=4,
)
downlinks = st.sampled_from(["dense", "delta", "quantised", "sparse"])


def fleet_of(rows):
    text = "".join(
        f'[[board]]\nprofile = "{profile}"\ncount = {count}\navailability = {there}\n{battery}\n'
        for profile, count, there, battery in rows
    )
    return fleet_from_text(text, "mine.toml")


def settings_of(*overrides):
    return schema.from_text(
        "version = 1\nrounds = 9", overrides=["compression.compression-ratio=4", *overrides]
    )


@given(boards, downlinks, st.integers(0, 12), st.integers(0, 3), st.sampled_from([0.3, 1.0]))
def test_the_whole_is_the_sum_of_its_boards_and_of_their_rounds(rows, down, rounds, seed, share):
    settings = settings_of(
        f'compression.downlink="{down}"',
        f"seed={seed}",
        *(["clients.selection=uniform", f"clients.share={share}"] if share < 1 else []),
    )
    fleet = fleet_of(rows)
    planned = forecast(settings, LAYOUT, fleet, [100] * fleet.size)
    run = run_forecast(settings, fleet, planned, rounds=rounds)

    assert [board.device_id for board in run.boards] == [p.device_id for p in planned.prospects]
    assert run.upload_bytes == sum(board.upload_bytes for board in run.boards)
    assert run.download_bytes == sum(board.download_bytes for board in run.boards)
    assert run.energy_j == pytest.approx(sum(board.energy_j for board in run.boards))
    assert run.rounds == rounds or run.end is not None
    for board, prospect in zip(run.boards, planned.prospects, strict=True):
        assert 0 <= board.rounds_lost <= board.rounds <= run.rounds - board.rounds_away
        whole = LAYOUT.state_bytes + 1_000 + ORDER_BYTES
        assert board.download_bytes <= board.rounds * whole
        assert board.busy_s <= run.simulated_s + 1e-9 * rounds
        if isinstance(prospect.outcome, Planned):
            assert board.upload_bytes == board.rounds * prospect.outcome.upload_bytes
        else:
            assert (board.rounds, board.upload_bytes, board.busy_s) == (0, 0, 0)


@given(st.integers(1, 8), st.integers(0, 3))
def test_where_everybody_is_there_a_run_is_so_many_times_its_round(rounds, seed):
    settings = settings_of(f"seed={seed}")
    fleet = fleet_of([("rpi-4b-4gb", 2, "1.0", ""), ("laptop", 1, "1.0", "")])
    planned = forecast(settings, LAYOUT, fleet, [100, 200, 300])
    run = run_forecast(settings, fleet, planned, rounds=rounds)
    costs = [prospect.outcome.cost for prospect in planned.prospects]
    round_s = max(cost.modelled_total_s for cost in costs)
    assert run.simulated_s == pytest.approx(rounds * round_s)
    for board, prospect, cost in zip(run.boards, planned.prospects, costs, strict=True):
        power = prospect.board.power
        waits_s = round_s - cost.modelled_total_s
        joules = cost.modelled_energy_j + power.idle.value * waits_s
        assert (board.rounds, board.rounds_away) == (rounds, 0)
        assert board.energy_j == pytest.approx(rounds * joules)
        assert board.download_bytes == rounds * prospect.load.download_bytes


@given(st.integers(1, 30), st.integers(0, 50))
def test_a_board_is_away_as_the_fleet_draws_it(rounds, seed):
    settings = settings_of(f"seed={seed}")
    fleet = fleet_of([("laptop", 1, "1.0", ""), ("laptop", 1, "0.5", "")])
    planned = forecast(settings, LAYOUT, fleet, [100, 100])
    always, board = run_forecast(settings, fleet, planned, rounds=rounds).boards
    there = [
        available(
            fleet.presence(1, 2), seed=seed, device_id="sim-0001", round_number=number, now_s=0.0
        )
        for number in range(1, rounds + 1)
    ]
    assert (always.rounds, always.rounds_away) == (rounds, 0)
    assert (board.rounds, board.rounds_away) == (sum(there), rounds - sum(there))


def test_a_battery_ends_a_boards_part_in_the_run():
    settings = settings_of()
    fleet = fleet_of([("laptop", 1, "1.0", 'battery = { capacity = "50 J" }'), LAPTOP])
    planned = forecast(settings, LAYOUT, fleet, [100, 100])
    board, other = run_forecast(settings, fleet, planned, rounds=10_000).boards
    a_round_j = planned.prospects[0].outcome.cost.modelled_energy_j
    slower = planned.prospects[1].outcome.cost.modelled_total_s
    waits_s = max(0.0, slower - planned.prospects[0].outcome.cost.modelled_total_s)
    a_round_j += waits_s * planned.prospects[0].board.power.idle.value
    assert board.energy_j == pytest.approx(50)
    assert (board.rounds, board.rounds_lost) == (int(50 // a_round_j) + 1, 1)
    assert board.rounds + board.rounds_away == 10_000
    assert (other.rounds, other.rounds_lost) == (10_000, 0)


def test_a_run_ends_early_where_nobody_is_left():
    settings = settings_of("clients.quorum=0.4")
    fleet = fleet_of([("laptop", 1, "1.0", 'battery = { capacity = "50 J" }')])
    planned = forecast(settings, LAYOUT, fleet, [100])
    run = run_forecast(settings, fleet, planned, rounds=10_000)
    assert run.rounds == run.boards[0].rounds < 10_000
    assert run.end == (
        f"round {run.rounds + 1}: expected somebody of 1 simulated board(s) at "
        f"{run.simulated_s:.10g} s or later, got nobody: its battery is empty (1); give boards "
        f"later windows, a higher probability or a fuller battery in the fleet, or ask for "
        f"{run.rounds} round(s)"
    )


def test_a_run_ends_early_where_too_few_updates_would_arrive():
    """Each window is half as long as the round of the board, which comes back for the next one."""
    settings = settings_of()
    one_round = forecast(settings, LAYOUT, fleet_of([LAPTOP]), [100]).prospects[0].outcome.cost
    windows = [[100 * at, 100 * at + one_round.modelled_total_s / 2] for at in range(9)]
    fleet = fleet_of([("laptop", 1, f"{windows}", "")])
    run = run_forecast(settings, fleet, forecast(settings, LAYOUT, fleet, [100]), rounds=9)
    assert (run.rounds, run.boards[0].rounds, run.boards[0].rounds_lost) == (3, 3, 3)
    assert run.end == (
        "round 3: too few updates would arrive in time, for the 3rd round in a row; lower "
        "clients.quorum, or give boards longer windows and fuller batteries in the fleet"
    )


def test_waiting_for_boards_takes_time_and_joules():
    settings = settings_of()
    fleet = fleet_of([("laptop", 1, "[[1000, 2000]]", "")])
    planned = forecast(settings, LAYOUT, fleet, [100])
    cost = planned.prospects[0].outcome.cost
    run = run_forecast(settings, fleet, planned, rounds=1)
    assert run.simulated_s == pytest.approx(1000 + cost.modelled_total_s)
    idle_j = 1000 * planned.prospects[0].board.power.idle.value
    assert run.energy_j == pytest.approx(idle_j + cost.modelled_energy_j)


def test_what_a_board_missed_comes_in_packets_where_they_are_smaller():
    settings = settings_of('compression.downlink="sparse"')
    every_other = "[[0, 1], [60, 61], [120, 121]]"
    fleet = fleet_of([("laptop", 1, every_other, "")])
    planned = forecast(settings, LAYOUT, fleet, [100])
    (board,) = run_forecast(settings, fleet, planned, rounds=4).boards
    first = planned.prospects[0].load.download_bytes
    dense_bytes = 4 * LAYOUT.parameter_count
    packet = dense_bytes // 50 + 4  # and its length; 50 is the ratio unless set
    assert board.rounds > 1
    assert board.download_bytes > first + (board.rounds - 1) * ORDER_BYTES
    assert (board.download_bytes - first - (board.rounds - 1) * ORDER_BYTES) % packet == 0


def test_where_more_comes_down_than_in_the_round_planned_boards_train_less_and_are_in_time():
    """A pretrained model is everybody's own file in round 1, and comes down whole from round 2."""
    settings = settings_of(
        'model={name="vit-tiny",pretrained="/tmp/vit.safetensors"}',
        'clients.round-deadline="60 s"',
        "local.epochs=1000",
    )
    layout = stack(stem=400_000, body=2_000_000, tail=8_000_000, head=5_000)
    fleet = fleet_of([("rpi-3b-plus", 1, "1.0", "")])
    first = forecast(settings, layout, fleet, [300])
    run = run_forecast(settings, fleet, first, rounds=9)
    later = forecast(settings, layout, fleet, [300], number=2)
    (one,), (two,) = first.prospects, later.prospects
    assert two.outcome.plan.epochs < one.outcome.plan.epochs < 1_000
    assert (run.rounds, run.end) == (9, None)
    assert (run.boards[0].rounds, run.boards[0].rounds_lost) == (9, 0)
    assert run.simulated_s <= 9 * 60


def test_a_board_that_what_it_missed_leaves_no_time_to_train_sits_out():
    """The whole model alone takes the NB-IoT modem longer than the deadline."""
    settings = settings_of(
        'model={name="vit-tiny",pretrained="/tmp/vit.safetensors"}',
        'clients.round-deadline="60 s"',
        "clients.quorum=0.5",
    )
    layout = stack(stem=40_000, body=200_000, head=5_000)
    fleet = fleet_of([("rpi-3b-plus-nbiot", 1, "1.0", ""), LAPTOP])
    planned = forecast(settings, layout, fleet, [100, 100])
    modem, laptop = run_forecast(settings, fleet, planned, rounds=9).boards
    assert (modem.rounds, modem.rounds_lost, modem.rounds_away) == (1, 0, 0)
    assert modem.upload_bytes == planned.prospects[0].outcome.upload_bytes
    assert laptop.rounds == 9


def test_where_more_comes_down_boards_train_less_for_their_joules_too():
    """At 8 W the laptop's 20 MB/s take 1.2 J for the model, of 5 J for the round."""
    settings = settings_of(
        'model={name="vit-tiny",pretrained="/tmp/vit.safetensors"}',
        "limits.energy-j-per-round=5",
        "local.epochs=1000",
    )
    layout = stack(stem=40_000, body=700_000, head=5_000)
    fleet = fleet_of([LAPTOP])
    first = forecast(settings, layout, fleet, [300])
    (board,) = run_forecast(settings, fleet, first, rounds=9).boards
    assert first.prospects[0].outcome.plan.binding == "energy"
    assert board.rounds == 9
    assert 9 * 4 < board.energy_j <= 9 * 5
