import json

import pytest

from cli.flower import FakeFlower, FakeLog, FlowerState
from cli.follow import Submitted, follow
from fedfreeze.run_folder import RunFailure, RunFolder, RunStatus
from fedfreeze.wall_clock import FakeClock

RUNNING = FlowerState("running")
COMPLETED = FlowerState("finished:completed")
FAILED = FlowerState("finished:failed", "Simulation failed with exception: boom")


class Script(FakeClock):
    """A clock that does something to the run's folder at given seconds."""

    def __init__(self, **steps):
        super().__init__()
        self.steps = sorted((float(at.removeprefix("at_")), step) for at, step in steps.items())

    def sleep(self, seconds):
        super().sleep(seconds)
        while self.steps and self.steps[0][0] <= self.now():
            self.steps.pop(0)[1]()


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def add_round(folder, number, **more):
    with folder.rounds.open("a") as file:
        file.write(json.dumps({"round": number, "rounds": 3, **more}) + "\n")


def watch(folder, flower, clock, *, problem=lambda: None, gone=lambda: False, log=None):
    said = []
    run = Submitted("1", folder, log or FakeLog(), problem, gone)
    return follow(run, flower, said.append, clock), [line for line in said if "round " in line]


def test_each_round_is_said_once_and_the_run_ends_when_both_witnesses_say_so(folder):
    clock = Script(
        at_1=lambda: folder.write_status(RunStatus("running", 0, 3)),
        at_2=lambda: add_round(folder, 1),
        at_3=lambda: add_round(folder, 2),
        at_4=lambda: (add_round(folder, 3), folder.write_status(RunStatus("finished", 3, 3))),
    )
    failure, said = watch(folder, FakeFlower(RUNNING, COMPLETED), clock)
    assert failure is None
    assert said[1:] == ["round 1/3", "round 2/3", "round 3/3"]


def test_why_a_board_sits_out_is_said_once(folder):
    reason = {"sim-0000": "memory: fc alone needs 83.2 MB, the board has 25.6 MB"}
    clock = Script(
        at_1=lambda: add_round(folder, 1, sat_out=reason),
        at_2=lambda: add_round(folder, 2, sat_out={**reason, "sim-0001": "uplink: too thin"}),
        at_3=lambda: folder.write_status(RunStatus("finished", 2, 2)),
    )
    said = []
    run = Submitted("1", folder, FakeLog(), lambda: None, lambda: False)
    follow(run, FakeFlower(COMPLETED), said.append, clock)
    assert [line for line in said if "sits out" in line] == [
        "  sim-0000 sits out: memory: fc alone needs 83.2 MB, the board has 25.6 MB",
        "  sim-0001 sits out: uplink: too thin",
    ]


def test_the_rounds_of_an_earlier_part_are_not_said_again(folder):
    add_round(folder, 1)
    clock = Script(
        at_1=lambda: add_round(folder, 2),
        at_2=lambda: folder.write_status(RunStatus("finished", 2, 2)),
    )
    failure, said = watch(folder, FakeFlower(COMPLETED), clock)
    assert failure is None
    assert [line for line in said if line.startswith("round")] == ["round 2/3"]


def test_rounds_that_a_resumed_server_drops_and_does_again_are_said(folder):
    add_round(folder, 1)
    add_round(folder, 2)
    clock = Script(
        at_1=lambda: folder.rounds.write_text('{"round": 1, "rounds": 3}\n'),
        at_2=lambda: add_round(folder, 2),
        at_3=lambda: folder.write_status(RunStatus("finished", 2, 2)),
    )
    _, said = watch(folder, FakeFlower(COMPLETED), clock)
    assert [line for line in said if line.startswith("round")] == ["round 2/3"]


def test_the_servers_own_error_is_what_is_reported(folder):
    error = RunFailure("FleetError", "1 of 2 boards came within 120 s", 6)
    clock = Script(at_1=lambda: folder.write_status(RunStatus("failed", 0, 3, error=error)))
    flower = FakeFlower(RUNNING)
    failure, _ = watch(folder, flower, clock)
    assert failure == error
    assert flower.asked == 0


def test_an_error_that_nobody_foresaw_waits_for_the_traceback_in_the_log(folder):
    error = RunFailure("IndexError", "list index out of range", 7)
    folder.write_status(RunStatus("failed", 0, 3, error=error))
    flower = FakeFlower(RUNNING, RUNNING, FAILED)
    failure, _ = watch(folder, flower, FakeClock())
    assert failure == error
    assert flower.asked == 3


def test_without_a_status_the_logs_last_words_are_reported(folder):
    folder.flower_log.write_text("INFO :  started\nTraceback:\nValueError: boom\n")
    log = FakeLog()
    log.ended = True
    failure, _ = watch(folder, FakeFlower(FAILED), FakeClock(), log=log)
    assert failure == RunFailure(
        "RunError",
        "Simulation failed with exception: boom\nTraceback:\nValueError: boom",
        7,
    )


def test_a_run_that_flower_calls_completed_without_its_servers_word_is_a_failure(folder):
    log = FakeLog()
    log.ended = True
    failure, _ = watch(folder, FakeFlower(COMPLETED), FakeClock(), log=log)
    assert failure == RunFailure(
        "RunError", "Flower says that the run completed, but its server did not say so", 7
    )


def test_a_server_that_says_finished_is_not_believed_when_flower_says_failed(folder):
    folder.write_status(RunStatus("finished", 3, 3))
    failure, _ = watch(folder, FakeFlower(FAILED), FakeClock())
    assert failure == RunFailure("RunError", FAILED.details, 7)


def test_a_run_that_flower_never_ends_is_given_up_a_minute_after_its_server(folder):
    clock = Script(at_5=lambda: folder.write_status(RunStatus("finished", 3, 3)))
    failure, _ = watch(folder, FakeFlower(RUNNING), clock)
    assert failure == RunFailure(
        "RunError",
        "the server has ended, but Flower still says 'running' after 60 s",
        7,
    )
    assert 65 <= clock.now() < 70


def test_a_dead_superlink_ends_the_run_at_once(folder):
    clock = FakeClock()
    flower = FakeFlower(RUNNING)
    dead = "the SuperLink ended with exit code -9"
    failure, _ = watch(folder, flower, clock, problem=lambda: dead if clock.now() > 3 else None)
    assert failure == RunFailure("RunError", dead, 7)
    assert clock.now() < 4
    assert flower.asked == 0


def test_flower_is_asked_rarely_while_all_is_quiet(folder):
    folder.write_status(RunStatus("running", 0, 3))
    clock = Script(at_100=lambda: folder.write_status(RunStatus("finished", 3, 3)))
    flower = FakeFlower(*[RUNNING] * 9, COMPLETED)
    assert watch(folder, flower, clock)[0] is None
    assert flower.asked == 10


GONE = (
    "the process of the server app (flwr-simulation) ended without a word: "
    "it was killed, by a person or for want of memory"
)


@pytest.mark.parametrize("status", [None, RunStatus("running", 1, 3)])
def test_a_killed_server_app_is_noticed_long_before_flower_notices(folder, status):
    if status is not None:
        folder.write_status(status)
    folder.flower_log.write_text("Killed in action\n")
    clock = FakeClock()
    flower = FakeFlower(RUNNING)
    failure, _ = watch(folder, flower, clock, gone=lambda: clock.now() > 3)
    assert failure == RunFailure("RunError", f"{GONE}\nKilled in action", 7)
    assert clock.now() < 6
    assert flower.asked == 1


def test_a_server_app_that_ends_by_itself_is_not_called_killed(folder):
    # Its process goes a moment before its last word is seen.
    folder.write_status(RunStatus("running", 2, 3))
    clock = Script(at_4=lambda: folder.write_status(RunStatus("finished", 3, 3)))
    flower = FakeFlower(RUNNING, RUNNING, RUNNING, COMPLETED)
    failure, _ = watch(folder, flower, clock, gone=lambda: clock.now() >= 3.5)
    assert failure is None


def test_what_flower_knows_of_a_server_app_that_is_gone_wins(folder):
    clock = FakeClock()
    failure, _ = watch(folder, FakeFlower(FAILED), clock, gone=lambda: True)
    assert failure == RunFailure("RunError", FAILED.details, 7)


def test_a_traceback_that_flower_repeats_is_said_once(folder):
    folder.flower_log.write_text("Traceback:\n  File x\nValueError: boom\n")
    log = FakeLog()
    log.ended = True
    details = "Simulation failed with exception: Traceback:\n  File x\nValueError: boom"
    flower = FakeFlower(FlowerState("finished:failed", details))
    failure, _ = watch(folder, flower, FakeClock(), log=log)
    assert failure == RunFailure("RunError", f"{details}\nTraceback:", 7)
