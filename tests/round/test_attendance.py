"""Boards that come, go and run empty, in whole rounds on an in-process grid."""

from __future__ import annotations

import numpy as np
import pytest

from compression import decode
from device_profiles.board import load_board
from device_profiles.fleet import fleet_text
from fedfreeze.errors import FleetError
from tests.conftest import records
from tests.round.held_models import held_by, model_of

TINY = (
    'task="tests.tiny_task"',
    "compression.compression-ratio=1",
    'compression.upload-time="10 s"',
    'clients.round-deadline="60 s"',
)

# Its thin link makes a round take some seconds, so that there is something to leave from.
SLOW = "rpi-3b-plus-nbiot"
IDLE_W = load_board(SLOW).power.idle.value
DEADLINE_S = 60.0


def fleet(*ways):
    """A slow board for each way to take part."""
    return "".join(f'[[board]]\nprofile = "{SLOW}"\n{way}\n' for way in ways)


def windows(*pairs):
    return f"availability = [{', '.join(f'[{begin!r}, {end!r}]' for begin, end in pairs)}]"


def battery(joules):
    return f'battery = {{ capacity = "{joules!r} J" }}'


@pytest.fixture
def tiny_run(small_run):
    """Makes a run of the tiny task on a fleet, a board for each way."""

    def make(*ways, overrides=(), rounds=9, **more):
        wanted = (*TINY, f"rounds={rounds}", *overrides)
        return small_run(*wanted, nodes=len(ways), **{"fleet-toml": fleet(*ways)}, **more)

    return make


def decided(run, number, device_id):
    """What was decided of one client in one round; None if it was not asked."""
    found = [
        record
        for record in records(run.folder, "decisions")
        if (record["round"], record["device_id"]) == (number, device_id)
    ]
    return found[0] if found else None


def bits(arrays):
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}


@pytest.fixture
def second_round(tiny_run):
    """When round 2 begins, and when the update of the third board arrives in it."""
    run = tiny_run("", "", "", name="always")
    run.play(until=2)
    begin_s = records(run.folder)[0]["simulated_total_s"]
    arrival_s = decided(run, 2, "sim-0002")["arrival_s"]
    assert begin_s < arrival_s < begin_s + DEADLINE_S
    return begin_s, arrival_s


# ---- a board that leaves in mid-round


@pytest.fixture
def lost(tiny_run, second_round):
    """The third board leaves in mid-round 2 and is back a second later."""
    begin_s, arrival_s = second_round
    leaves_s = (begin_s + arrival_s) / 2
    return tiny_run("", "", windows((0.0, leaves_s), (leaves_s + 1, 1e6)))


def test_an_update_whose_board_left_is_lost_and_the_log_says_why(lost, second_round):
    lost.play(until=3)
    before, record, after = records(lost.folder)
    begin_s, arrival_s = second_round
    why = f"it left {(arrival_s - begin_s) / 2:.3g} s before its update would have arrived"
    assert (record["clients_used"], record["clients_lost"], record["clients_late"]) == (2, 1, 0)
    assert record["lost"] == {"sim-0002": why}
    assert not record["void"]
    decision = decided(lost, 2, "sim-0002")
    assert (decision["status"], decision["detail"]) == ("lost", why)
    assert decision["arrival_s"] == arrival_s
    assert record["simulated_s"] == DEADLINE_S
    assert record["simulated_total_s"] == before["simulated_total_s"] + DEADLINE_S
    assert (after["clients_used"], after["clients_lost"], "lost" in after) == (3, 0, False)


def test_what_was_in_the_lost_packet_is_in_the_residual_again(lost):
    lost.play(until=2)
    before = held_by(lost, 2)
    assert before.pending.round_number == 2
    packet = before.pending.packet
    lost.play(until=3)
    after = held_by(lost, 2)
    assert decided(lost, 3, "sim-0002")["residual_was"] == "returned"
    assert decided(lost, 3, "sim-0001")["residual_was"] == "accepted"
    sent = decode(packet, lost.strategy.layout, max_bytes=10**6).update
    assert any(np.any(array) for array in sent.values())
    for name, array in after.pending.residual_before.items():
        expected = before.residual.get(name, 0) + sent.get(name, np.zeros_like(array))
        assert np.array_equal(array, expected.astype(np.float32)), name


def test_a_lost_update_is_to_everybody_what_the_lost_reply_of_a_real_board_is(lost, tiny_run):
    """The model does not move by it, and what comes back is the same to the last bit."""

    def drop(reply):
        report = reply.content["report"]
        is_lost = report.get("round_number") == 2 and report["device_id"] == "sim-0002"
        return None if is_lost else reply

    dropped = tiny_run(
        "",
        "",
        "",
        overrides=('clients.round-timeout="1 s"',),
        grid={"on_reply": drop},
        name="dropped",
    )
    for until in (2, 3):
        dropped.play(until=until)
        lost.play(until=until)
        assert model_of(lost) == model_of(dropped)
    assert records(dropped.folder)[1]["failures"] == {"sim-0002": "no reply within 1 s"}


# ---- a board that is away


def test_a_board_that_is_away_is_not_asked_keeps_its_state_and_gets_what_it_missed(
    tiny_run, second_round
):
    begin_s, _ = second_round
    until_s = begin_s + 1e-6
    run = tiny_run("", "", windows((0.0, begin_s), (until_s, 1e6)))
    run.play(until=1)
    before = held_by(run, 2)
    run.play(until=2)
    assert decided(run, 2, "sim-0002") is None
    record = records(run.folder)[1]
    assert (record["clients_asked"], record["clients_away"], record["clients_used"]) == (2, 1, 2)
    assert record["away"] == {"sim-0002": f"outside its windows until {until_s:.10g} s"}
    held = held_by(run, 2)
    assert held.pending == before.pending
    assert bits(held.residual) == bits(before.residual)
    assert (held.model_version, bits(held.model)) == (0, bits(before.model))
    published = model_of(run)
    run.play(until=3)
    held = held_by(run, 2)
    assert (held.model_version, bits(held.model)) == (2, published)
    assert decided(run, 3, "sim-0002")["residual_was"] == "accepted"
    assert records(run.folder)[2]["clients_used"] == 3


# ---- nobody there


def test_while_nobody_is_there_the_clock_moves_to_the_next_window(tiny_run):
    run = tiny_run(windows((5.5, 6.5), (100.25, 1e6)), windows((200.0, 1e6)), rounds=2)
    run.play(until=1)
    (record,) = records(run.folder)
    assert record["simulated_wait_s"] == 5.5
    assert record["simulated_total_s"] == 5.5 + record["simulated_s"]
    assert record["void"]  # a second is too short for a round
    assert record["simulated_s"] == DEADLINE_S
    run.play()
    _, record = records(run.folder)
    assert decided(run, 2, "sim-0000")["status"] == "used"
    assert record["simulated_total_s"] == pytest.approx(100.25 + record["simulated_s"])


def test_bad_luck_alone_voids_no_round(tiny_run):
    """Three boards that are there once in 20 rounds: in most rounds all draws say no at first."""
    run = tiny_run(*["availability = 0.05"] * 3, rounds=6)
    run.play()
    rounds = records(run.folder)
    assert not any(record["void"] for record in rounds)
    waits_s = [record.get("simulated_wait_s", 0.0) for record in rounds]
    assert sum(wait_s > 3 * DEADLINE_S for wait_s in waits_s) >= 3
    assert all(record["clients_asked"] + record["clients_away"] == 3 for record in rounds)
    total_s = sum(waits_s) + sum(record["simulated_s"] for record in rounds)
    assert rounds[-1]["simulated_total_s"] == pytest.approx(total_s)


def test_a_run_whose_boards_do_not_come_back_ends_with_what_is_wrong(tiny_run, second_round):
    begin_s, _ = second_round
    run = tiny_run(*[windows((0.0, begin_s))] * 3, rounds=9)
    with pytest.raises(FleetError) as caught:
        run.play()
    assert str(caught.value) == (
        f"round 2: expected somebody of 3 simulated board(s) at {begin_s:.10g} s or later, got "
        "nobody: its windows are over (3); give boards later windows, a higher probability or a "
        "fuller battery in the fleet, or ask for 1 round(s)"
    )
    fewer = tiny_run(*[windows((0.0, begin_s))] * 3, rounds=1, resume=True)
    fewer.play()
    assert fewer.folder.read_status().state == "finished"


def test_a_board_without_room_does_not_end_the_run_while_others_are_still_to_come(small_run):
    """The first one has too little memory for the model; the other one comes after an hour."""
    strong = '[[board]]\nprofile = "laptop"\navailability = [[3600, 1e6]]\n'
    text = f'[[board]]\nprofile = "rpi-zero-2w"\n{strong}'
    run = small_run(
        "rounds=5", "local.batch-size=600", "data.partition=iid", nodes=2, **{"fleet-toml": text}
    )
    run.play()
    first, second = records(run.folder)[:2]
    assert (first["void"], first["clients_sat_out"], first["clients_asked"]) == (True, 1, 0)
    assert first["simulated_total_s"] == 3600.0
    assert set(first["untrainable_layers"]) == set(run.strategy.layout.names)
    assert "untrainable_layers" not in second
    assert (second["clients_away"], second["clients_used"]) == (0, 1)


# ---- batteries and joules


@pytest.fixture
def drained(tiny_run):
    """Two boards whose batteries end in mid-run, and one on the mains."""
    run = tiny_run("", battery(20.0), battery(35.0), rounds=8)
    run.play()
    return run


def test_a_battery_is_what_its_board_has_drawn_less(drained):
    held = {"sim-0001": 20.0, "sim-0002": 35.0}
    assert decided(drained, 1, "sim-0000").get("battery_j") is None
    for record in records(drained.folder):
        for device_id, before_j in list(held.items()):
            decision = decided(drained, record["round"], device_id)
            if decision is None:
                assert record["away"][device_id] == "its battery is empty"
                assert before_j == 0
                continue
            left_j = before_j - decision["modelled_energy_j"]
            assert decision["battery_j"] == pytest.approx(left_j, abs=1e-9)
            held[device_id] = decision["battery_j"]
    assert held == {"sim-0001": 0.0, "sim-0002": 0.0}


def test_a_board_whose_battery_ends_before_its_update_has_arrived_is_lost_and_then_away(drained):
    told = [decided(drained, number, "sim-0001") for number in range(1, 9)]
    status = [None if decision is None else decision["status"] for decision in told]
    last = status.index("lost")
    assert status == ["used"] * last + ["lost"] + [None] * (7 - last)
    assert told[last]["detail"].startswith("its battery was empty ")
    assert told[last]["battery_j"] == 0


def test_a_board_whose_battery_ends_while_it_waits_for_a_lost_one_is_used_and_then_away(drained):
    """It has 15 J more, and idles for the rest of a minute."""
    lost = [r["round"] for r in records(drained.folder) if r["clients_lost"]]
    told = {number: decided(drained, number, "sim-0002") for number in range(1, 9)}
    assert len(lost) == 1
    assert [n for n, decision in told.items() if decision] == list(range(1, lost[0] + 1))
    assert (told[lost[0]]["status"], told[lost[0]]["battery_j"]) == ("used", 0.0)


def test_the_joules_of_a_round_are_its_boards_and_those_of_a_run_its_rounds(drained):
    power = load_board(SLOW).power
    total_j = 0.0
    for record in records(drained.folder):
        boards = [
            decision
            for i in range(3)
            if (decision := decided(drained, record["round"], f"sim-{i:04d}")) is not None
        ]
        drawn_j = [decision["modelled_energy_j"] for decision in boards]
        assert record["modelled_energy_j"] == pytest.approx(sum(drawn_j))
        total_j += sum(drawn_j)
        assert record["modelled_energy_total_j"] == pytest.approx(total_j)
        mains = boards[0]
        radio_s = mains["modelled_download_s"] + mains["modelled_upload_s"]
        work_s = radio_s + mains["modelled_compute_s"]
        assert mains["modelled_energy_j"] == pytest.approx(
            power.radio.value * radio_s
            + power.compute.value * mains["modelled_compute_s"]
            + power.idle.value * (record["simulated_s"] - work_s)
        )
    summary = drained.folder.read_status().summary
    assert summary["modelled_energy_total_j"] == pytest.approx(total_j)


def test_a_battery_idles_while_its_board_is_not_asked(tiny_run):
    run = tiny_run(
        battery(1e4), battery(1e4), overrides=('clients.selection="uniform"', "clients.share=0.5")
    )
    run.play()
    drawn_j = dict.fromkeys(("sim-0000", "sim-0001"), 0.0)
    for record in records(run.folder):
        for device_id in drawn_j:
            decision = decided(run, record["round"], device_id)
            drawn_j[device_id] += (
                IDLE_W * record["simulated_s"]
                if decision is None
                else decision["modelled_energy_j"]
            )
    left = run.strategy.attendance.state()["battery_j"]
    assert left == pytest.approx({i: 1e4 - joules for i, joules in drawn_j.items()})


# ---- the same trace, whatever happens to the server

EVENTFUL = (
    "availability = 0.6",
    "availability = 0.5",
    windows((0.0, 4.0), (7.0, 95.0), (200.0, 1e6)),
    battery(30.0),
    f"availability = 0.7\n{battery(600.0)}",
    windows((150.0, 1e6)),
)
EVENTFUL_RULES = ('clients.selection="uniform"', "clients.share=0.8", "clients.quorum=0.3")
# Of the machine that simulates, or moved by the random ids of messages.
OF_THE_MACHINE = {"train_s", "wall_s", "upload_bytes", "download_bytes", "cost"}


def trace(run):
    """Everything that was written down of a run but what the machine puts in."""
    return [
        {key: value for key, value in record.items() if key not in OF_THE_MACHINE}
        for file in ("rounds", "decisions")
        for record in records(run.folder, file)
    ]


@pytest.fixture
def eventful(tiny_run):
    def make(**more):
        return tiny_run(*EVENTFUL, overrides=EVENTFUL_RULES, rounds=6, **more)

    return make


def test_the_same_seed_gives_the_same_trace(eventful):
    first, second = eventful(name="one"), eventful(name="two")
    first.play()
    second.play()
    assert trace(first) == trace(second)
    assert model_of(first) == model_of(second)
    reasons = {why for r in records(first.folder) for why in r.get("away", {}).values()}
    assert {"not there by chance", "its battery is empty"} <= reasons
    assert any("windows until" in why for why in reasons)
    assert any(record["clients_lost"] for record in records(first.folder))


def test_another_seed_draws_who_is_there_anew(tiny_run):
    def away(seed):
        run = tiny_run(*["availability = 0.5"] * 3, overrides=(f"seed={seed}",), name=f"of-{seed}")
        run.play(until=4)
        return [record.get("away") for record in records(run.folder)]

    assert away(0) != away(1)


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 5])
def test_a_run_that_was_stopped_has_the_trace_of_one_that_was_not(eventful, stop):
    whole = eventful(name="whole")
    whole.play()
    eventful(name="cut").play(until=stop)
    resumed = eventful(name="cut", resume=True)
    resumed.play()
    assert trace(resumed) == trace(whole)
    assert model_of(resumed) == model_of(whole)
    assert resumed.strategy.attendance.state() == whole.strategy.attendance.state()


def test_boards_that_never_leave_train_the_model_of_a_fleet_that_says_nothing(small_run):
    """To the bit, and with the same arrivals: being asked who is there changes nothing."""
    plain = fleet_text("mixed")
    for way in ("availability = 1.0", 'battery = { capacity = "1000000 Wh" }'):
        plain = plain.replace("[[board]]", f"[[board]]\n{way}")
    runs = [
        small_run("rounds=2", nodes=10, name=name, **{"fleet-toml": text})
        for name, text in (("plain", fleet_text("mixed")), ("told", plain))
    ]
    for run in runs:
        run.play()
    assert model_of(runs[0]) == model_of(runs[1])
    arrivals = [[r["arrival_s"] for r in records(run.folder, "decisions")] for run in runs]
    assert arrivals[0] == arrivals[1]
    assert [r["clients_away"] for r in records(runs[1].folder)] == [0, 0]
    assert "battery_j" not in records(runs[0].folder, "decisions")[0]
