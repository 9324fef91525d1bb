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
    assert run.simulated_s <= rounds * planned.limits.deadline_s
    for board, prospect in zip(run.boards, planned.prospects, strict=True):
        assert 0 <= board.rounds <= rounds - board.rounds_away
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
    fleet = fleet_of([("laptop", 1, "0.5", "")])
    planned = forecast(settings, LAYOUT, fleet, [100])
    (board,) = run_forecast(settings, fleet, planned, rounds=rounds).boards
    there = [
        available(
            fleet.presence(0, 1), seed=seed, device_id="sim-0000", round_number=number, now_s=0.0
        )
        for number in range(1, rounds + 1)
    ]
    assert (board.rounds, board.rounds_away) == (sum(there), rounds - sum(there))


def test_a_battery_ends_a_boards_part_in_the_run():
    settings = settings_of()
    fleet = fleet_of([("laptop", 1, "1.0", 'battery = { capacity = "50 J" }')])
    planned = forecast(settings, LAYOUT, fleet, [100])
    (board,) = run_forecast(settings, fleet, planned, rounds=10_000).boards
    a_round_j = planned.prospects[0].outcome.cost.modelled_energy_j
    assert board.energy_j == pytest.approx(board.rounds * a_round_j)
    assert 50 <= board.energy_j < 50 + a_round_j
    assert board.rounds + board.rounds_away == 10_000


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
